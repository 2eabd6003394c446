package main

import (
	"hash/crc32"
	"strconv"
	"strings"

	"github.com/apache/rocketmq-client-go/v2/primitive"
)

const bodyShownMax = 4096

// Request is one command, with the fields of all commands.
type Request struct {
	ID       int    `json:"id"`
	Do       string `json:"do"`
	Producer string `json:"producer"`
	Consumer string `json:"consumer"`
	Namesrv  string `json:"namesrv"`
	Group    string `json:"group"`
	Options  Object `json:"options"`

	Transactional bool   `json:"transactional"`
	Trace         bool   `json:"trace"`
	TraceTopic    string `json:"traceTopic"`

	Topics    []Subscription `json:"topics"`
	Mode      string         `json:"mode"`
	ReplyWith string         `json:"replyWith"`
	Topic     string         `json:"topic"`

	Message   Message   `json:"message"`
	Messages  []Message `json:"messages"`
	Queue     *Queue    `json:"queue"`
	HashKey   *string   `json:"hashKey"`
	TimeoutMs int64     `json:"timeoutMs"`

	From     int   `json:"from"`
	AtLeast  int   `json:"atLeast"`
	WithinMs int64 `json:"withinMs"`
}

// Subscription is one topic of a consumer.
type Subscription struct {
	Topic      string `json:"topic"`
	Expression string `json:"expression"`
	SQL        string `json:"sql"`
}

// Queue names one queue.
type Queue struct {
	Topic      string `json:"topic"`
	BrokerName string `json:"brokerName"`
	QueueID    int    `json:"queueId"`
}

func (q *Queue) client() *primitive.MessageQueue {
	return &primitive.MessageQueue{Topic: q.Topic, BrokerName: q.BrokerName, QueueId: q.QueueID}
}

// Message is what a case wants sent.
type Message struct {
	Topic          string                 `json:"topic"`
	Body           string                 `json:"body"`
	BodySize       *int                   `json:"bodySize"`
	Tags           *string                `json:"tags"`
	Keys           *string                `json:"keys"`
	Flag           int32                  `json:"flag"`
	DelayLevel     int                    `json:"delayLevel"`
	WaitStoreMsgOK *bool                  `json:"waitStoreMsgOK"`
	Properties     map[string]interface{} `json:"properties"`
}

func (m Message) client(how Request) *primitive.Message {
	body := []byte(m.Body)
	if m.BodySize != nil {
		body = []byte(strings.Repeat("x", *m.BodySize))
	}
	made := primitive.NewMessage(m.Topic, body)
	made.Flag = m.Flag
	if m.Tags != nil {
		made.WithTag(*m.Tags)
	}
	if m.Keys != nil {
		made.WithKeys(strings.Split(*m.Keys, " "))
	}
	if m.DelayLevel != 0 {
		made.WithDelayTimeLevel(m.DelayLevel)
	}
	if m.WaitStoreMsgOK != nil {
		made.WithProperty(primitive.PropertyWaitStoreMsgOk, strconv.FormatBool(*m.WaitStoreMsgOK))
	}
	for name, value := range m.Properties {
		made.WithProperty(name, text(value))
	}
	if how.Queue != nil {
		made.Queue = how.Queue.client()
	}
	if how.HashKey != nil {
		made.WithShardingKey(*how.HashKey)
	}
	return made
}

// text is a JSON value as Java's String.valueOf shows it.
func text(value interface{}) string {
	switch value := value.(type) {
	case string:
		return value
	case bool:
		return strconv.FormatBool(value)
	case float64:
		return strconv.FormatFloat(value, 'f', -1, 64)
	}
	return ""
}

func whole(value interface{}) int {
	number, _ := strconv.Atoi(text(value))
	return number
}

func shown(message *primitive.MessageExt) Object {
	queueID, brokerName := 0, ""
	if message.Queue != nil {
		queueID, brokerName = message.Queue.QueueId, message.Queue.BrokerName
	}
	said := Object{
		"topic": message.Topic, "flag": message.Flag, "properties": message.GetProperties(),
		"tags": orNull(message.GetTags()), "keys": orNull(message.GetKeys()),
		"queueId": queueID, "brokerName": brokerName, "queueOffset": message.QueueOffset,
		"msgId": message.MsgId, "offsetMsgId": message.OffsetMsgId,
		"reconsumeTimes": message.ReconsumeTimes, "bornTimestamp": message.BornTimestamp,
		"storeTimestamp": message.StoreTimestamp, "sysFlag": message.SysFlag,
		"bodySize": len(message.Body),
	}
	if len(message.Body) <= bodyShownMax {
		said["body"] = string(message.Body)
	} else {
		said["bodyCrc"] = crc32.ChecksumIEEE(message.Body)
	}
	return said
}

func orNull(value string) interface{} {
	if value == "" {
		return nil
	}
	return value
}

var statuses = map[primitive.SendStatus]string{
	primitive.SendOK:                "SEND_OK",
	primitive.SendFlushDiskTimeout:  "FLUSH_DISK_TIMEOUT",
	primitive.SendFlushSlaveTimeout: "FLUSH_SLAVE_TIMEOUT",
	primitive.SendSlaveNotAvailable: "SLAVE_NOT_AVAILABLE",
	primitive.SendUnknownError:      "UNKNOWN_ERROR",
}

func sent(result *primitive.SendResult) Object {
	said := Object{
		"status": statuses[result.Status], "msgId": result.MsgID, "offsetMsgId": result.OffsetMsgID,
		"queueOffset": result.QueueOffset, "transactionId": orNull(result.TransactionID),
		"regionId": result.RegionID, "recallHandle": nil,
	}
	if queue := result.MessageQueue; queue != nil {
		said["queueId"], said["brokerName"], said["topic"] = queue.QueueId, queue.BrokerName, queue.Topic
	}
	return said
}
