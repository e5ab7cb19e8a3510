/**
 * Loaded before the operator's own program (`--expose-gc --import`): on SIGUSR2 it collects garbage and prints what is left of the heap. The
 * operator is otherwise as it is anywhere.
 */
process.on('SIGUSR2', () => {
  for (let round = 0; round < 4; round++) globalThis.gc?.()
  console.error(`heap-on-signal ${process.memoryUsage().heapUsed}`)
})
