// Package log implements log.*: messages that templates write to the log.
package log

import (
	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Functions returns log.debug and so on, with which templates write log messages.
func Functions(f *function.Facts) function.Table {
	t := function.Table{}
	for _, level := range []string{"debug", "info", "warning", "error", "critical", "exception"} {
		to := level
		if level == "exception" {
			to = "error" // Salt would add the traceback of an exception
		}
		t["log."+level] = function.Of("message", func(message any) bool {
			f.WriteLog(to, value.Str(message))
			return true
		})
	}
	return t
}
