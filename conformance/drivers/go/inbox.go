package main

import (
	"sync"
	"time"
)

// Inbox is what came to a client, in its order; a reader waits until there is enough of it.
type Inbox struct {
	lock    sync.Mutex
	items   []Object
	changed chan struct{}
}

func newInbox() *Inbox { return &Inbox{changed: make(chan struct{})} }

func (b *Inbox) add(items ...Object) {
	b.lock.Lock()
	defer b.lock.Unlock()
	b.items = append(b.items, items...)
	close(b.changed)
	b.changed = make(chan struct{})
}

func (b *Inbox) await(request Request) []Object {
	deadline := time.After(time.Duration(request.WithinMs) * time.Millisecond)
	for {
		b.lock.Lock()
		items, changed := b.items, b.changed
		b.lock.Unlock()
		if len(items) >= request.From+request.AtLeast {
			return since(items, request.From)
		}
		select {
		case <-changed:
		case <-deadline:
			b.lock.Lock()
			defer b.lock.Unlock()
			return since(b.items, request.From)
		}
	}
}

func since(items []Object, from int) []Object {
	if from > len(items) {
		from = len(items)
	}
	return append([]Object{}, items[from:]...)
}
