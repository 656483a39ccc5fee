package function

import "github.com/corpus-agent/corpus-agent/state/value"

// logTable has log.debug and so on: a template's own words for the log.
func logTable(f *Facts) Table {
	t := Table{}
	for _, level := range []string{"debug", "info", "warning", "error", "critical", "exception"} {
		to := level
		if level == "exception" {
			to = "error" // there is no exception whose trace would follow
		}
		t["log."+level] = Of("message", func(message any) bool {
			f.log(to, value.Str(message))
			return true
		})
	}
	return t
}
