// graphile-worker: one task, a job key for each job; more than one queue are its named queues, whose jobs go one after the other.
import { Logger, makeWorkerUtils, run } from 'graphile-worker';
import pg from 'pg';

export async function graphile({ url, schema, names, callers }) {
  const pool = new pg.Pool({ connectionString: url, max: callers });
  pool.on('error', () => {});
  const logger = new Logger(() => () => {});
  const utils = await makeWorkerUtils({ pgPool: pool, schema, logger });
  await utils.migrate();
  let runner;
  return {
    put: (queue, key, payload) =>
      utils.addJob('task', payload, { jobKey: key, ...(names.length > 1 && { queueName: queue }) }),
    async work(done) {
      // No handler waits for anything, so as many jobs go at once as ours have workers.
      runner = await run({ pgPool: pool, schema, logger, concurrency: callers, noHandleSignals: true, taskList: { task: async () => done() } });
    },
    async stop() {
      await runner?.stop();
      await utils.release();
      await pool.end();
    },
  };
}
