import type { Visit } from './visit.ts'

/**
 * A saga is a list of steps, as data. A step is done when its evidence stands in `status`; nothing else is read to decide. Nothing here
 * performs I/O: the engine does, through the effect that the step names.
 */
export type EffectTable = { readonly [name: string]: { readonly args: unknown; readonly result: unknown } }

/** Performs one effect. `visit` lives for one reconcile: what the service said in it need not be asked twice. */
export type Perform<Effects extends EffectTable> = {
  readonly [Name in keyof Effects]: (args: Effects[Name]['args'], visit: Visit, signal: AbortSignal) => Promise<Effects[Name]['result']>
}

export interface Step<View, Status, Effects extends EffectTable> {
  readonly name: string
  readonly done: (status: Status) => boolean
  readonly effect: keyof Effects & string
  readonly args: (view: View) => unknown
  readonly absorb: (status: Status, result: never) => Status
  /** Performs its effect, of all effects of the kind. @returns the status with what came of it */
  readonly take: (effects: Perform<Effects>, view: View, visit: Visit, signal: AbortSignal) => Promise<(status: Status) => Status>
  /** The status with what its effect had found out when it halted (`Halt.with`). */
  readonly learn: (status: Status, evidence: unknown) => Status
  /** Everything that was absorbed must stand in the API server before this effect runs: it can't be taken back. */
  readonly writeAhead: boolean
  /** It only watches, and so goes on while the resource is suspended or being deleted: whether there is something to watch. */
  readonly watches: (status: Status) => boolean
  /** Later steps need not wait for it when it fails. */
  readonly independent: boolean
}

/**
 * Defines a step with its effect's types checked: `args` gives what the effect takes, `absorb` takes what it gives. A kind's steps can be taken with that
 * kind's effects only.
 */
export const defineSteps =
  <View, Status, Effects extends EffectTable>() =>
  <Name extends keyof Effects & string>(step: {
    readonly name: string
    readonly done: (status: Status) => boolean
    readonly effect: Name
    readonly args: (view: View) => Effects[Name]['args']
    readonly absorb: (status: Status, result: Effects[Name]['result']) => Status
    readonly writeAhead?: boolean
    readonly watches?: (status: Status) => boolean
    readonly independent?: boolean
  }): Step<View, Status, Effects> => ({
    writeAhead: false,
    watches: () => false,
    independent: false,
    ...step,
    async take(effects, view, visit, signal) {
      const result = await effects[step.effect](step.args(view), visit, signal)
      return (status) => step.absorb(status, result)
    },
    // What a halt carries is its effect's result, by agreement.
    learn: (status, evidence) => step.absorb(status, evidence as Effects[Name]['result']),
  })

/** The first step whose evidence is missing, or undefined when all is done. */
export const nextStep = <View, Status, Effects extends EffectTable>(
  steps: readonly Step<View, Status, Effects>[],
  status: Status,
): Step<View, Status, Effects> | undefined => steps.find((step) => !step.done(status))
