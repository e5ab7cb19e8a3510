import type { DatabaseConnection, Dialect, Driver } from 'kysely'
import { inSpan, isTracing } from '../../lib/tracing.ts'

/** A span for each statement that is a part of some work: which kind of statement it is, and nothing of its text or its values. */
export function traced<D extends Dialect>(dialect: D): D {
  if (!isTracing()) return dialect
  const make = dialect.createDriver.bind(dialect)
  dialect.createDriver = () => tracedDriver(make())
  return dialect
}

function tracedDriver(driver: Driver): Driver {
  const seen = new WeakSet<DatabaseConnection>()
  const acquire = driver.acquireConnection.bind(driver)
  driver.acquireConnection = async (...given) => {
    const connection = await acquire(...given)
    if (!seen.has(connection)) {
      seen.add(connection)
      const execute = connection.executeQuery.bind(connection) as DatabaseConnection['executeQuery']
      connection.executeQuery = ((query, ...rest) => {
        const operation = /^\s*([a-z]{1,16})/i.exec(query.sql)?.[1]?.toLowerCase() ?? 'statement'
        return inSpan(
          `postgresql ${operation}`,
          () => ({ kind: 'client', isPart: true, attributes: { 'db.system.name': 'postgresql', 'db.operation.name': operation } }),
          () => execute(query, ...rest),
        )
      }) as DatabaseConnection['executeQuery']
    }
    return connection
  }
  return driver
}
