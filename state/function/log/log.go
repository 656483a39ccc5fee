// Package log answers log.*: messages that templates write to the log.
package log

import (
	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Functions are log.debug and so on, by which templates write to the log.
func Functions(f *function.Facts) function.Table {
	t := function.Table{}
	for _, level := range []string{"debug", "info", "warning", "error", "critical", "exception"} {
		to := level
		if level == "exception" {
			to = "error" // there is no exception whose trace would follow
		}
		t["log."+level] = function.Of("message", func(message any) bool {
			f.WriteLog(to, value.Str(message))
			return true
		})
	}
	return t
}
