'use strict';
// consumer.*: push consumers. A message's own properties tell the listener what to do with it.

const { Consumer } = require('ali-ons');
const { Unsupported, Inbox, show, options } = require('./messages');

const consumers = new Map();

const OPTIONS = {
  namespace: true,
  consumeFromWhere: true,
  consumeTimestamp: true,
  messageModel: value => ({ isBroadcast: value === 'BROADCASTING' }),
  maxReconsumeTimes: value => ({ maxReconsumeTimes: Number(value) }),
  pullBatchSize: value => ({ pullBatchSize: Number(value) }),
  pullThresholdForQueue: value => ({ pullThresholdForQueue: Number(value) }),
  pullInterval: value => ({ pullInterval: Number(value) }),
};

async function start(request) {
  for (const kind of ['trace', 'replyWith']) {
    if (request[kind]) throw new Unsupported(`consumer with ${kind}`);
  }
  if (request.mode === 'orderly') throw new Unsupported('orderly listener');
  const consumer = new Consumer({
    httpclient: {},
    nameSrv: request.namesrv.split(';'),
    consumerGroup: request.group,
    instanceName: request.consumer,
    pollNameServerInteval: 2000,
    rebalanceInterval: 2000,
    ...options(request.options, OPTIONS),
  });
  const inbox = new Inbox();
  consumer.on('error', error => console.error(error));
  for (const wanted of request.topics) subscribe(consumer, inbox, wanted);
  await consumer.ready();
  consumers.set(request.consumer, { consumer, inbox });
}

function subscribe(consumer, inbox, { topic, expression, sql }) {
  const filter = sql ? { expressionType: 'SQL92', subString: sql } : expression;
  consumer.subscribe(topic, filter, async message => {
    const { properties } = message;
    inbox.add({ ...show(message), batchSize: 1, receivedAt: Date.now() });
    if (properties.sleepMs) {
      await new Promise(resolve => setTimeout(resolve, Number(properties.sleepMs)));
    }
    // Not ACTION_RETRY: the client forgets that answer when the message comes from the retry topic.
    if (message.reconsumeTimes < Number(properties.fail || 0)) throw new Error('the listener failed');
  });
}

function of(request) {
  return consumers.get(request.consumer).consumer;
}

/** The queues that the consumer holds now, by its own rebalance. */
function queues(request) {
  return [...of(request).processQueueTable.values()].map(({ messageQueue }) => ({
    topic: messageQueue.topic,
    brokerName: messageQueue.brokerName,
    queueId: messageQueue.queueId,
  }));
}

async function shutdown(request) {
  const found = consumers.get(request.consumer);
  consumers.delete(request.consumer);
  if (found) await found.consumer.close();
}

module.exports = {
  'consumer.start': start,
  'consumer.received': request => consumers.get(request.consumer).inbox.wait(request),
  'consumer.shutdown': shutdown,
  'consumer.queues': queues,
  'consumer.persist': request => of(request).persistConsumerOffset(),
};
