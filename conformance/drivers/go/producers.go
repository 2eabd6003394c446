package main

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

const asyncTimeout = 60 * time.Second

var (
	producers    sync.Map // name -> rocketmq.Producer
	transactions sync.Map // name -> rocketmq.TransactionProducer
	checks       sync.Map // name -> *Inbox
)

func registerProducers() {
	actions["producer.start"] = startProducer
	actions["producer.shutdown"] = shutdownProducer
	actions["producer.send"] = func(request Request) (interface{}, error) {
		return sendOne(request, request.Message)
	}
	actions["producer.sendMany"] = sendMany
	actions["producer.sendBatch"] = sendBatch
	actions["producer.sendTransaction"] = sendTransaction
	actions["producer.checks"] = func(request Request) (interface{}, error) {
		inbox, there := checks.Load(request.Producer)
		if !there {
			return nil, errors.New("not a transactional producer")
		}
		return inbox.(*Inbox).await(request), nil
	}
	actions["producer.request"] = ask
}

func of(request Request) (rocketmq.Producer, error) {
	found, there := producers.Load(request.Producer)
	if !there {
		return nil, unsupported{"plain sends by a transactional producer"}
	}
	return found.(rocketmq.Producer), nil
}

// bySelf lets each message say how its queue is chosen, with the client's own three selectors.
type bySelf struct{ manual, hash, round producer.QueueSelector }

func (s bySelf) Select(
	message *primitive.Message, queues []*primitive.MessageQueue, last string,
) *primitive.MessageQueue {
	if message.Queue != nil {
		return s.manual.Select(message, queues, last)
	}
	if message.GetShardingKey() != "" {
		return s.hash.Select(message, queues, last)
	}
	return s.round.Select(message, queues, last)
}

func startProducer(request Request) (interface{}, error) {
	options, err := producerOptions(request)
	if err != nil {
		return nil, err
	}
	if request.Transactional {
		inbox := newInbox()
		made, err := rocketmq.NewTransactionProducer(&decisions{inbox: inbox}, options...)
		if err != nil {
			return nil, err
		}
		checks.Store(request.Producer, inbox)
		transactions.Store(request.Producer, made)
		return nil, made.Start()
	}
	made, err := rocketmq.NewProducer(options...)
	if err != nil {
		return nil, err
	}
	producers.Store(request.Producer, made)
	return nil, made.Start()
}

func producerOptions(request Request) ([]producer.Option, error) {
	options := []producer.Option{
		producer.WithGroupName(request.Group),
		producer.WithInstanceName(request.Producer),
		producer.WithNameServer(strings.Split(request.Namesrv, ";")),
		producer.WithRetry(2),
		producer.WithQueueSelector(bySelf{
			producer.NewManualQueueSelector(), producer.NewHashQueueSelector(),
			producer.NewRoundRobinQueueSelector(),
		}),
	}
	if request.Trace {
		options = append(options, producer.WithTrace(traceOf(request)))
	}
	for name, value := range request.Options {
		switch name {
		case "namespace":
			options = append(options, producer.WithNamespace(text(value)))
		case "retryTimesWhenSendFailed":
			options = append(options, producer.WithRetry(whole(value)))
		case "sendMsgTimeout":
			timeout := time.Duration(whole(value)) * time.Millisecond
			options = append(options, producer.WithSendMsgTimeout(timeout))
		case "vipChannelEnabled":
			options = append(options, producer.WithVIPChannel(text(value) == "true"))
		case "defaultTopicQueueNums":
			options = append(options, producer.WithDefaultTopicQueueNums(whole(value)))
		case "createTopicKey":
			options = append(options, producer.WithCreateTopicKey(text(value)))
		case "compressMsgBodyOverHowmuch":
			options = append(options, producer.WithCompressMsgBodyOverHowmuch(whole(value)))
		default:
			return nil, unsupported{"producer option " + name}
		}
	}
	return options, nil
}

func traceOf(request Request) *primitive.TraceConfig {
	return &primitive.TraceConfig{
		GroupName: request.Group, TraceTopic: request.TraceTopic, Access: primitive.Local,
		Resolver: primitive.NewPassthroughResolver(strings.Split(request.Namesrv, ";")),
	}
}

func shutdownProducer(request Request) (interface{}, error) {
	if found, there := producers.LoadAndDelete(request.Producer); there {
		return nil, found.(rocketmq.Producer).Shutdown()
	}
	if found, there := transactions.LoadAndDelete(request.Producer); there {
		return nil, found.(rocketmq.TransactionProducer).Shutdown()
	}
	return nil, nil
}

func sendOne(request Request, wanted Message) (interface{}, error) {
	through, err := of(request)
	if err != nil {
		return nil, err
	}
	message := wanted.client(request)
	var said Object
	switch request.Mode {
	case "oneway":
		return nil, through.SendOneWay(context.Background(), message)
	case "async":
		said, err = sendAsync(through, message)
	default:
		said, err = sendSync(through, request, message)
	}
	if err == nil {
		said["uniqKey"] = message.GetProperty(primitive.PropertyUniqueClientMessageIdKeyIndex)
	}
	return said, err
}

func sendSync(through rocketmq.Producer, request Request, messages ...*primitive.Message) (Object, error) {
	ctx, cancel := context.WithCancel(context.Background())
	if request.TimeoutMs != 0 {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(request.TimeoutMs)*time.Millisecond)
	}
	defer cancel()
	result, err := through.SendSync(ctx, messages...)
	if err != nil {
		return nil, err
	}
	return sent(result), nil
}

func sendAsync(through rocketmq.Producer, messages ...*primitive.Message) (Object, error) {
	type outcome struct {
		result *primitive.SendResult
		err    error
	}
	done := make(chan outcome, 2) // on an error the client may call twice
	told := func(_ context.Context, result *primitive.SendResult, err error) {
		done <- outcome{result, err}
	}
	if err := through.SendAsync(context.Background(), told, messages...); err != nil {
		return nil, err
	}
	select {
	case one := <-done:
		if one.err != nil {
			return nil, one.err
		}
		return sent(one.result), nil
	case <-time.After(asyncTimeout):
		return nil, errors.New("the callback never came")
	}
}

// sendMany sends each message in the same way; it stops at the first error.
func sendMany(request Request) (interface{}, error) {
	results := []interface{}{}
	for _, wanted := range request.Messages {
		one, err := sendOne(request, wanted)
		if err != nil {
			return nil, err
		}
		results = append(results, one)
	}
	return results, nil
}

func sendBatch(request Request) (interface{}, error) {
	through, err := of(request)
	if err != nil {
		return nil, err
	}
	messages := []*primitive.Message{}
	for _, wanted := range request.Messages {
		messages = append(messages, wanted.client(request))
	}
	if request.Mode == "async" {
		return sendAsync(through, messages...)
	}
	return sendSync(through, request, messages...)
}

func sendTransaction(request Request) (interface{}, error) {
	found, there := transactions.Load(request.Producer)
	if !there {
		return nil, errors.New("not a transactional producer")
	}
	message := request.Message.client(request)
	result, err := found.(rocketmq.TransactionProducer).SendMessageInTransaction(context.Background(), message)
	if err != nil {
		return nil, err
	}
	said := sent(result.SendResult)
	said["localState"] = states[result.State]
	return said, nil
}

func ask(request Request) (interface{}, error) {
	through, err := of(request)
	if err != nil {
		return nil, err
	}
	if request.Mode == "async" {
		return nil, unsupported{"a request with a callback, whose type is internal to the client"}
	}
	wait := time.Duration(request.TimeoutMs) * time.Millisecond
	reply, err := through.Request(context.Background(), wait, request.Message.client(request))
	if err != nil {
		return nil, err
	}
	return Object{"body": string(reply.Body), "properties": reply.GetProperties()}, nil
}

// decisions are in the message: "local", and "check" with one word for each check.
type decisions struct {
	inbox  *Inbox
	lock   sync.Mutex
	counts map[string]int
}

var states = map[primitive.LocalTransactionState]string{
	primitive.CommitMessageState:   "COMMIT_MESSAGE",
	primitive.RollbackMessageState: "ROLLBACK_MESSAGE",
	primitive.UnknowState:          "UNKNOW",
}

func (d *decisions) ExecuteLocalTransaction(message *primitive.Message) primitive.LocalTransactionState {
	return stateOf(message.GetProperty("local"))
}

func (d *decisions) CheckLocalTransaction(message *primitive.MessageExt) primitive.LocalTransactionState {
	d.inbox.add(shown(message))
	words := strings.Split(message.GetProperty("check"), ",")
	d.lock.Lock()
	defer d.lock.Unlock()
	if d.counts == nil {
		d.counts = map[string]int{}
	}
	key := message.GetProperty(primitive.PropertyUniqueClientMessageIdKeyIndex)
	count := d.counts[key]
	d.counts[key]++
	if count >= len(words) {
		count = len(words) - 1
	}
	return stateOf(words[count])
}

func stateOf(word string) primitive.LocalTransactionState {
	switch word {
	case "commit":
		return primitive.CommitMessageState
	case "rollback":
		return primitive.RollbackMessageState
	}
	return primitive.UnknowState
}
