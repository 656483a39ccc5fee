// Package ps implements ps.*: the processes of the host.
package ps

import (
	"strconv"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// ps reads the processes in /proc.
type ps struct{ *function.Facts }

// Functions returns the functions of ps that templates may call.
func Functions(f *function.Facts) function.Table {
	p := ps{f}
	return function.Table{
		"ps.get_pid_list":          function.Of("", p.PIDs),
		"ps.pgrep":                 function.Of("pattern, user=None, full=False, pattern_is_regex=False", p.grep),
		"ps.num_cpus":              function.Of("", p.CountProcessors),
		"ps.total_physical_memory": function.Of("", p.memory),
		"ps.boot_time":             function.Of("", p.boot),
		"ps.top":                   function.Of("num_processes=5, interval=3", p.top),
	}
}

// grep returns the processes whose name, or whole command line, contains a text; None if there are none.
func (p ps) grep(pattern, user string, full, isRegexp bool) (any, error) {
	if !isRegexp {
		pattern = value.EscapeRegexp(pattern)
	}
	re, err := value.CompileRegexp(pattern, value.RegexpFlags{})
	if err != nil {
		return nil, err
	}
	pids, err := p.PIDs()
	found := value.NewList()
	for _, pid := range pids {
		dir := "/proc/" + value.Str(pid)
		m, err := re.Search(p.ProcessName(dir, full))
		if err != nil {
			return nil, err
		}
		if m != nil && (user == "" || p.ProcessOwner(dir) == user) {
			found.Append(pid)
		}
	}
	if found.Len() == 0 {
		return nil, err
	}
	return found, err
}

// memory returns the host's memory in bytes.
func (p ps) memory() (int, error) {
	all, err := p.Facts.MemInfo()
	entry, _ := all.Value("MemTotal").(*value.Map)
	n, _ := strconv.Atoi(value.Str(entry.Value("value")))
	return n << 10, err
}

// boot returns the Unix time at which the host was started.
func (p ps) boot() (int, error) {
	text, err := function.ReadText(p.Host, "/proc/uptime")
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(text, " ")
	up, err := strconv.ParseFloat(first, 64)
	return int(p.Time().Add(-time.Duration(up * float64(time.Second))).Unix()), err
}
