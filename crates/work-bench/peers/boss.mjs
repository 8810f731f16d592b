// pg-boss: the policy `short` keeps one waiting job for each singleton key. Its workers take batches and are told of new jobs.
import { PgBoss } from 'pg-boss';

const BATCH = 64;

export async function boss({ url, schema, names, callers }) {
  const boss = new PgBoss({ connectionString: url, schema, max: callers, supervise: false, schedule: false, useListenNotify: true });
  boss.on('error', (error) => console.error(error));
  await boss.start();
  for (const name of names) await boss.createQueue(name, { policy: 'short', notify: true });
  return {
    async put(queue, key, data) {
      const id = await boss.send(queue, data, { singletonKey: key });
      if (id === null) throw new Error(`pg-boss refused ${key}`);
    },
    async work(done) {
      const options = { batchSize: BATCH, localConcurrency: 4, burstWhenBatchFull: true, pollingIntervalSeconds: 0.5 };
      for (const name of names) await boss.work(name, options, async (jobs) => jobs.forEach(done));
    },
    stop: () => boss.stop({ graceful: false }),
  };
}
