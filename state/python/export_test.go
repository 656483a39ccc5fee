package python

import "time"

// Started returns the number of processes that the worker has started.
func (w *Worker) Started() int { return w.started }

// Decode reads a message.
func Decode(data []byte) (any, error) { return decode(data, nil) }

// Encode writes a message.
func Encode(v any) ([]byte, error) { return encode(v) }

// ReadFrame and WriteFrame are the functions that read and write the frames of the pipes.
var (
	ReadFrame  = readFrame
	WriteFrame = writeFrame
)

// LimitImports sets the maximum time that a file takes to be loaded, and a grain function to return.
func (w *Worker) LimitImports(most time.Duration) { w.most, w.each = most, most }

// Keeps is host.Kept in memory.
type Keeps map[string][]byte

// Read returns what was kept under a name.
func (k Keeps) Read(name string) []byte { return k[name] }

// Write keeps data under a name.
func (k Keeps) Write(name string, data []byte) { k[name] = data }
