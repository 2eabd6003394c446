'use strict';
// producer.*: the client has one way to send, and waits for its answer.

const { Producer } = require('ali-ons');
const { Unsupported, read, options } = require('./messages');

const producers = new Map();

/** Not the client's 3 s: a loaded machine has needed more. */
const SEND_MS = 15000;

const OPTIONS = {
  namespace: true,
  sendMsgTimeout: value => ({ sendMsgTimeout: Number(value) }),
  retryTimesWhenSendFailed: value => ({ retryTimesWhenSendFailed: Number(value) }),
  createTopicKey: true,
  defaultTopicQueueNums: value => ({ defaultTopicQueueNums: Number(value) }),
  compressMsgBodyOverHowmuch: value => ({ compressMsgBodyOverHowmuch: Number(value) }),
};

async function start(request) {
  for (const kind of ['transactional', 'trace']) {
    if (request[kind]) throw new Unsupported(`${kind} producer`);
  }
  const producer = new Producer({
    httpclient: {},
    nameSrv: request.namesrv.split(';'),
    producerGroup: request.group,
    instanceName: request.producer,
    pollNameServerInteval: 2000,
    sendMsgTimeout: SEND_MS,
    ...options(request.options, OPTIONS),
  });
  producer.on('error', error => console.error(error));
  await producer.ready();
  producers.set(request.producer, producer);
}

async function send(request, wanted = request.message) {
  for (const how of ['queue', 'hashKey', 'timeoutMs']) {
    if (request[how] !== undefined) throw new Unsupported(`send with ${how}`);
  }
  if (request.mode && request.mode !== 'sync') throw new Unsupported(`${request.mode} send`);
  const sent = await producers.get(request.producer).send(read(wanted));
  return {
    status: sent.sendStatus,
    msgId: sent.msgId,
    offsetMsgId: sent.msgId,
    queueOffset: sent.queueOffset,
    queueId: Number(sent.messageQueue.queueId),
    brokerName: sent.messageQueue.brokerName,
    topic: sent.messageQueue.topic,
    transactionId: null,
    recallHandle: null,
  };
}

async function sendMany(request) {
  const results = [];
  for (const wanted of request.messages) results.push(await send(request, wanted));
  return results;
}

async function shutdown(request) {
  const producer = producers.get(request.producer);
  producers.delete(request.producer);
  if (producer) await producer.close();
}

module.exports = {
  'producer.start': start,
  'producer.send': request => send(request),
  'producer.sendMany': sendMany,
  'producer.shutdown': shutdown,
};
