package main

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
)

// listening is one push consumer with what it received. A message's properties say what is done with it.
type listening struct {
	rocketmq.PushConsumer
	inbox     *Inbox
	orderly   bool
	replyWith string
}

var consumers sync.Map // name -> *listening

func registerConsumers() {
	actions["consumer.start"] = startConsumer
	actions["consumer.received"] = onConsumer(func(one *listening, request Request) (interface{}, error) {
		return one.inbox.await(request), nil
	})
	actions["consumer.shutdown"] = func(request Request) (interface{}, error) {
		found, there := consumers.LoadAndDelete(request.Consumer)
		if !there {
			return nil, nil
		}
		return nil, found.(*listening).Shutdown()
	}
	actions["consumer.suspend"] = onConsumer(func(one *listening, _ Request) (interface{}, error) {
		one.Suspend()
		return nil, nil
	})
	actions["consumer.resume"] = onConsumer(func(one *listening, _ Request) (interface{}, error) {
		one.Resume()
		return nil, nil
	})
	actions["consumer.unsubscribe"] = onConsumer(func(one *listening, request Request) (interface{}, error) {
		return nil, one.Unsubscribe(request.Topic)
	})
	// The client has no call for it: its own timer does it every five seconds.
	actions["consumer.persist"] = func(Request) (interface{}, error) { return nil, nil }
}

func onConsumer(do func(one *listening, request Request) (interface{}, error)) action {
	return func(request Request) (interface{}, error) {
		found, there := consumers.Load(request.Consumer)
		if !there {
			return nil, errors.New("no such consumer")
		}
		return do(found.(*listening), request)
	}
}

func startConsumer(request Request) (interface{}, error) {
	options, err := consumerOptions(request)
	if err != nil {
		return nil, err
	}
	made, err := rocketmq.NewPushConsumer(options...)
	if err != nil {
		return nil, err
	}
	one := &listening{made, newInbox(), request.Mode == "orderly", request.ReplyWith}
	for _, topic := range request.Topics {
		selector := consumer.MessageSelector{Type: consumer.TAG, Expression: topic.Expression}
		if topic.SQL != "" {
			selector = consumer.MessageSelector{Type: consumer.SQL92, Expression: topic.SQL}
		}
		if err := made.Subscribe(topic.Topic, selector, one.listen); err != nil {
			return nil, err
		}
	}
	if err := made.Start(); err != nil {
		return nil, err
	}
	consumers.Store(request.Consumer, one)
	return nil, nil
}

var fromWhere = map[string]consumer.ConsumeFromWhere{
	"CONSUME_FROM_LAST_OFFSET":  consumer.ConsumeFromLastOffset,
	"CONSUME_FROM_FIRST_OFFSET": consumer.ConsumeFromFirstOffset,
	"CONSUME_FROM_TIMESTAMP":    consumer.ConsumeFromTimestamp,
}

func consumerOptions(request Request) ([]consumer.Option, error) {
	options := []consumer.Option{
		consumer.WithGroupName(request.Group),
		consumer.WithInstance(request.Consumer),
		consumer.WithNameServer(strings.Split(request.Namesrv, ";")),
		consumer.WithConsumerOrder(request.Mode == "orderly"),
		consumer.WithPullBatchSize(32),
	}
	if request.Trace {
		options = append(options, consumer.WithTrace(traceOf(request)))
	}
	for name, value := range request.Options {
		option, err := consumerOption(name, value)
		if err != nil {
			return nil, err
		}
		options = append(options, option)
	}
	return options, nil
}

func consumerOption(name string, value interface{}) (consumer.Option, error) {
	switch name {
	case "namespace":
		return consumer.WithNamespace(text(value)), nil
	case "consumeFromWhere":
		return consumer.WithConsumeFromWhere(fromWhere[text(value)]), nil
	case "consumeTimestamp":
		return consumer.WithConsumeTimestamp(text(value)), nil
	case "messageModel":
		if text(value) == "BROADCASTING" {
			return consumer.WithConsumerModel(consumer.BroadCasting), nil
		}
		return consumer.WithConsumerModel(consumer.Clustering), nil
	case "maxReconsumeTimes":
		return consumer.WithMaxReconsumeTimes(int32(whole(value))), nil
	case "pullBatchSize":
		return consumer.WithPullBatchSize(int32(whole(value))), nil
	case "consumeMessageBatchMaxSize":
		return consumer.WithConsumeMessageBatchMaxSize(whole(value)), nil
	case "pullThresholdForQueue":
		return consumer.WithPullThresholdForQueue(int64(whole(value))), nil
	case "pullInterval":
		return consumer.WithPullInterval(time.Duration(whole(value)) * time.Millisecond), nil
	case "vipChannelEnabled":
		return consumer.WithVIPChannel(text(value) == "true"), nil
	}
	return nil, unsupported{"consumer option " + name}
}

func (l *listening) listen(ctx context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
	now := time.Now().UnixMilli()
	for _, message := range messages {
		said := shown(message)
		said["batchSize"], said["receivedAt"] = len(messages), now
		l.inbox.add(said)
	}
	time.Sleep(time.Duration(number(messages, "sleepMs", 0)) * time.Millisecond)
	l.reply(messages)
	if !fails(messages) {
		return consumer.ConsumeSuccess, nil
	}
	if l.orderly {
		if context, there := primitive.GetOrderlyCtx(ctx); there {
			context.SuspendCurrentQueueTimeMillis = number(messages, "suspendMs", 200)
		}
		return consumer.SuspendCurrentQueueAMoment, nil
	}
	if context, there := primitive.GetConcurrentlyCtx(ctx); there {
		context.DelayLevelWhenNextConsume = number(messages, "failDelay", 1)
	}
	if messages[0].GetProperty("throw") != "" {
		return consumer.ConsumeRetryLater, errors.New("the listener failed")
	}
	return consumer.ConsumeRetryLater, nil
}

func (l *listening) reply(messages []*primitive.MessageExt) {
	through, there := producers.Load(l.replyWith)
	if !there {
		return
	}
	for _, message := range messages {
		reply, err := consumer.CreateReplyMessage(message, []byte("re: "+string(message.Body)))
		if err == nil {
			_, err = through.(rocketmq.Producer).SendSync(context.Background(), reply)
		}
		if err != nil {
			l.inbox.add(Object{"replyError": describe(err)})
		}
	}
}

// fails tells whether one of the messages shall fail this time: "fail" is how often.
func fails(messages []*primitive.MessageExt) bool {
	for _, message := range messages {
		times, err := strconv.Atoi(message.GetProperty("fail"))
		if err == nil && int(message.ReconsumeTimes) < times {
			return true
		}
	}
	return false
}

func number(messages []*primitive.MessageExt, property string, otherwise int) int {
	found, err := strconv.Atoi(messages[0].GetProperty(property))
	if err != nil {
		return otherwise
	}
	return found
}
