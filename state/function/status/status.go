// Package status implements status.*: the load, the memory and the counters of the kernel.
package status

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/jinja/salt"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// status implements the functions that read /proc.
type status struct{ *function.Facts }

// Functions returns the functions of status that templates may call.
func Functions(f *function.Facts) function.Table {
	s := status{f}
	return function.Table{
		"status.uptime":  function.Of("", s.uptime),
		"status.loadavg": function.Of("", s.load),
		"status.meminfo": function.Of("", s.MemInfo),
		"status.cpuinfo": function.Of("", s.processor),
		"status.nproc":   function.Of("", s.CountProcessors),
		"status.time": function.Of("format='%A, %d. %B %Y %I:%M%p'", func(format string) string {
			return salt.Strftime(s.Time(), format)
		}),
		"status.version": function.Of("", s.version),
	}.Add(counters(s))
}

func (s status) uptime(ctx context.Context) (*value.Map, error) {
	text, err := function.ReadText(s.Host, "/proc/uptime")
	if err != nil {
		return nil, err
	}
	first, _, _ := strings.Cut(text, " ")
	up, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return nil, fmt.Errorf("reading /proc/uptime: %w", err)
	}
	seconds := int(up)
	boot := s.Time().Add(-time.Duration(seconds) * time.Second).UTC()
	m := value.NewMap("seconds", seconds, "since_iso", boot.Format("2006-01-02T15:04:05.000000"), "since_t",
		int(boot.Unix()),
		"days", seconds/86400, "time", fmt.Sprintf("%d:%d", seconds%86400/3600, seconds%3600/60))
	if out, err := s.Output(ctx, host.Line{Argv: []string{"who", "-s"}}); err == nil {
		m.Set("users", len(strings.Split(out.Stdout, "\n")))
	}
	return m, nil
}

func (s status) load() (*value.Map, error) {
	text, err := function.ReadText(s.Host, "/proc/loadavg")
	f := strings.Fields(text)
	if err != nil || len(f) < 3 {
		return nil, fmt.Errorf("the load cannot be read: %w", err)
	}
	m := value.NewMap()
	for i, name := range []string{"1-min", "5-min", "15-min"} {
		n, err := strconv.ParseFloat(f[i], 64)
		if err != nil {
			return nil, fmt.Errorf("reading /proc/loadavg: %w", err)
		}
		m.Set(name, n)
	}
	return m, nil
}

// processor returns the attributes of the last processor that the kernel lists, as Salt does.
func (s status) processor() (*value.Map, error) {
	text, err := function.ReadText(s.Host, "/proc/cpuinfo")
	m := value.NewMap()
	for line := range strings.Lines(text) {
		name, v, ok := strings.Cut(line, ":")
		switch name = strings.TrimSpace(name); {
		case !ok:
		case name == "flags":
			m.Set(name, value.Strings(strings.Fields(v)...))
		default:
			m.Set(name, strings.TrimSpace(v))
		}
	}
	return m, err
}

func (s status) version() (string, error) {
	text, err := function.ReadText(s.Host, "/proc/version")
	return strings.TrimSpace(text), err
}
