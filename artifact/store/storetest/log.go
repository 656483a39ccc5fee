package storetest

import (
	"fmt"
	"strings"
	"sync"

	"github.com/corpus-agent/corpus-agent/artifact/store"
)

// Log records the requests of a store. Its Add is passed to store.Observe. The zero Log is empty and ready.
type Log struct {
	mu       sync.Mutex
	requests []store.Request
}

// Add records a request.
func (l *Log) Add(r store.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests = append(l.requests, r)
}

// Requests returns all requests so far, in the order in which they ended.
func (l *Log) Requests() []store.Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]store.Request(nil), l.requests...)
}

// Bytes returns the total number of bytes in the bodies of all requests.
func (l *Log) Bytes() int64 {
	sum := int64(0)
	for _, r := range l.Requests() {
		sum += r.Bytes
	}
	return sum
}

// Reset removes all requests.
func (l *Log) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests = nil
}

// String lists the requests, one on each line, for the messages of tests.
func (l *Log) String() string {
	lines := []string{}
	for _, r := range l.Requests() {
		line := fmt.Sprintf("%s %s", r.Op, r.Key)
		if r.Range.From > 0 || r.Range.Length > 0 {
			line += fmt.Sprintf(" from %d", r.Range.From)
		}
		line += fmt.Sprintf(", %d bytes", r.Bytes)
		if r.Err != nil {
			line += ": " + r.Err.Error()
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}
