package function

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// ps reads the processes in /proc.
type ps struct{ *Facts }

func psTable(f *Facts) Table {
	p := ps{f}
	return Table{
		"ps.get_pid_list":          Of("", p.pids),
		"ps.pgrep":                 Of("pattern, user=None, full=False, pattern_is_regex=False", p.grep),
		"ps.num_cpus":              Of("", status{f}.processors),
		"ps.total_physical_memory": Of("", p.memory),
		"ps.boot_time":             Of("", p.boot),
	}
}

func (p ps) pids() ([]any, error) {
	names, err := p.Host.Files.ReadDir("/proc")
	var pids []int
	for _, name := range names {
		if n, err := strconv.Atoi(name); err == nil {
			pids = append(pids, n)
		}
	}
	slices.Sort(pids)
	list := make([]any, len(pids))
	for i, pid := range pids {
		list[i] = pid
	}
	return list, err
}

// grep lists the processes whose name, or whole command line, has a text in it; None for none.
func (p ps) grep(pattern, user string, full, isRegexp bool) (any, error) {
	if !isRegexp {
		pattern = value.EscapeRegexp(pattern)
	}
	re, err := value.CompileRegexp(pattern, value.RegexpFlags{})
	if err != nil {
		return nil, err
	}
	pids, err := p.pids()
	found := value.NewList()
	for _, pid := range pids {
		dir := "/proc/" + value.Str(pid)
		m, err := re.Search(p.name(dir, full))
		if err != nil {
			return nil, err
		}
		if m != nil && (user == "" || p.owner(dir) == user) {
			found.Append(pid)
		}
	}
	if found.Len() == 0 {
		return nil, err
	}
	return found, err
}

func (p ps) name(dir string, full bool) string {
	if full {
		text, _ := readText(p.Host, dir+"/cmdline") // a process may have ended meanwhile
		return strings.TrimSpace(strings.ReplaceAll(text, "\x00", " "))
	}
	text, _ := readText(p.Host, dir+"/comm")
	return strings.TrimSpace(text)
}

func (p ps) owner(dir string) any {
	info, err := p.Host.Files.Stat(dir)
	if err != nil {
		return nil
	}
	return file{p.Facts}.userName(info.UID)
}

// memory is the host's memory in bytes.
func (p ps) memory() (int, error) {
	all, err := status{p.Facts}.memory()
	entry, _ := all.Value("MemTotal").(*value.Map)
	n, _ := strconv.Atoi(value.Str(entry.Value("value")))
	return n << 10, err
}

// boot is the second at which the host was started.
func (p ps) boot() (int, error) {
	text, err := readText(p.Host, "/proc/uptime")
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(text, " ")
	up, err := strconv.ParseFloat(first, 64)
	return int(p.now().Add(-time.Duration(up * float64(time.Second))).Unix()), err
}
