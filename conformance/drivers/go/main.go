// The Go client behind line-JSON on stdin and stdout; docs/conformance.md has the commands.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"sync"

	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/rlog"
)

// Object is one JSON object.
type Object = map[string]interface{}

// action runs one command; its result is whatever encoding/json can write.
type action func(request Request) (interface{}, error)

// unsupported is what the client cannot do at all: the case is shown as not applicable.
type unsupported struct{ what string }

func (e unsupported) Error() string { return e.what }

var (
	actions  = map[string]action{}
	features = []string{
		"send", "async", "oneway", "selector", "batch", "tags", "sql", "order", "broadcast", "retry",
		"delay", "timer", "transaction", "request", "trace", "namespace", "vip", "options",
	}
	replies     = json.NewEncoder(os.Stdout)
	repliesLock sync.Mutex
	codeInText  = regexp.MustCompile(`^CODE: (\d+),? +DESC`)
)

func main() {
	rlog.SetOutputPath("/dev/stderr")
	rlog.SetLogLevel("warn")
	replies.SetEscapeHTML(false)
	registerProducers()
	registerConsumers()
	hello()
	lines := bufio.NewReader(os.Stdin)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			os.Exit(0) // clients leave goroutines behind
		}
		var request Request
		if json.Unmarshal(line, &request) == nil {
			go serve(request)
		}
	}
}

func hello() {
	write(Object{"hello": Object{"client": "rocketmq-client-go", "features": features}})
}

func serve(request Request) {
	if request.Do == "hello" {
		hello()
		return
	}
	reply := Object{"id": request.ID}
	result, err := run(request)
	if err != nil {
		reply["error"] = describe(err)
	} else {
		reply["result"] = result
	}
	write(reply)
}

func run(request Request) (result interface{}, err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("panic: %v", panicked)
		}
	}()
	known, there := actions[request.Do]
	if !there {
		return nil, unsupported{request.Do}
	}
	return known(request)
}

func describe(err error) Object {
	said := Object{"type": fmt.Sprintf("%T", err), "message": err.Error()}
	var lacking unsupported
	if errors.As(err, &lacking) {
		said["type"] = "Unsupported"
	}
	var refused primitive.MQBrokerErr
	if errors.As(err, &refused) {
		said["code"] = int(refused.ResponseCode)
	} else if found := codeInText.FindStringSubmatch(err.Error()); found != nil {
		// Some errors keep their code to themselves, but say it.
		said["code"], _ = strconv.Atoi(found[1])
	}
	return said
}

func write(reply Object) {
	repliesLock.Lock()
	defer repliesLock.Unlock()
	if err := replies.Encode(reply); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}
