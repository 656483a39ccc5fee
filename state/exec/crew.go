package exec

import "sync"

// crew runs the steps of a run in goroutines. A goroutine that has ended a step takes another one: its stack has grown
// to what steps need, which takes longer than most checks.
type crew struct {
	mu   sync.Mutex
	idle []chan func() (deliver func())
}

// start runs work and then what it returns, in a goroutine. The goroutine is idle before it delivers.
func (c *crew) start(work func() (deliver func())) {
	if inbox := c.waiting(); inbox != nil {
		inbox <- work
		return
	}
	inbox := make(chan func() func(), 1)
	inbox <- work
	go func() {
		for work := range inbox {
			deliver := work()
			c.mu.Lock()
			c.idle = append(c.idle, inbox)
			c.mu.Unlock()
			deliver()
		}
	}()
}

// waiting returns the inbox of an idle goroutine, the last one that ended, or nil.
func (c *crew) waiting() chan func() func() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.idle) == 0 {
		return nil
	}
	last := len(c.idle) - 1
	inbox := c.idle[last]
	c.idle = c.idle[:last]
	return inbox
}

// end ends the idle goroutines.
func (c *crew) end() {
	for inbox := c.waiting(); inbox != nil; inbox = c.waiting() {
		close(inbox)
	}
}
