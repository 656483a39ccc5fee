package status

import (
	"context"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// counters returns the functions about processes, disks and counters of the kernel.
func counters(s status) function.Table {
	return function.Table{
		"status.all_status": function.Of("", s.everything),
		"status.procs":      function.Of("", s.processes),
		"status.pid":        function.Of("sig", s.pid),
		"status.diskusage":  function.Of("*args", s.disks),
		"status.diskstats":  function.Of("", s.diskCounters),
		"status.cpustats":   function.Of("", s.processorCounters),
		"status.vmstats":    function.Of("", s.memoryCounters),
		"status.netstats":   function.Of("", s.protocolCounters),
		"status.netdev":     function.Of("", s.linkCounters),
		"status.w":          function.Of("", s.sessions),
	}
}

// everything returns the results of the other functions. Values that cannot be read are empty.
func (s status) everything(ctx context.Context) *value.Map {
	all := value.NewMap()
	add := func(name string, v any, err error) {
		if err != nil {
			v = value.NewMap()
		}
		all.Set(name, function.Result(v))
	}
	cpu, err := s.processor()
	add("cpuinfo", cpu, err)
	counters, err := s.processorCounters()
	add("cpustats", counters, err)
	disks, err := s.diskCounters()
	add("diskstats", disks, err)
	usage, err := s.disks(ctx, nil)
	add("diskusage", usage, err)
	load, err := s.load()
	add("loadavg", load, err)
	memory, err := s.MemInfo()
	add("meminfo", memory, err)
	links, err := s.linkCounters()
	add("netdev", links, err)
	protocols, err := s.protocolCounters()
	add("netstats", protocols, err)
	up, err := s.uptime(ctx)
	add("uptime", up, err)
	virtual, err := s.memoryCounters()
	add("vmstats", virtual, err)
	who, err := s.sessions(ctx)
	add("w", who, err)
	return all
}

// processes returns the user and the command of all processes, by number.
func (s status) processes() (*value.Map, error) {
	pids, err := s.PIDs()
	all := value.NewMap()
	for _, pid := range pids {
		dir := "/proc/" + value.Str(pid)
		command := s.ProcessName(dir, true)
		if command == "" {
			command = "[" + s.ProcessName(dir, false) + "]"
		}
		if owner := s.ProcessOwner(dir); owner != nil { // it may have ended meanwhile
			all.Set(value.Str(pid), value.NewMap("user", owner, "cmd", command))
		}
	}
	return all, err
}

// pid returns the numbers of the processes whose command line matches a regular expression, one per line.
func (s status) pid(pattern string) (string, error) {
	re, err := value.CompileRegexp(pattern, value.RegexpFlags{})
	if err != nil {
		return "", err
	}
	all, err := s.processes()
	var found []string
	for pid, v := range all.All() {
		m, err := re.Search(value.Str(v.(*value.Map).Value("cmd")))
		if err != nil {
			return "", err
		}
		if m != nil && pid != strconv.Itoa(os.Getpid()) {
			found = append(found, value.Str(pid))
		}
	}
	return strings.Join(found, "\n"), err
}

// disks returns the size and the free space in bytes of the file systems that are mounted: all, those mounted at paths,
// or those of types, which may be globs.
func (s status) disks(ctx context.Context, wanted []string) (*value.Map, error) {
	kinds := map[string]string{}
	if text, err := function.ReadText(s.Host, "/proc/mounts"); err == nil {
		for line := range strings.Lines(text) {
			if f := strings.Fields(line); len(f) > 2 {
				kinds[strings.ReplaceAll(f[1], `\040`, " ")] = f[2]
			}
		}
	}
	usage, err := s.DiskFree(ctx, "ak", "1K-blocks", "used", "available", "capacity")
	if err != nil {
		return nil, err
	}
	all := value.NewMap()
	for _, at := range usage.Names() {
		entry := usage.Value(at).(*value.Map)
		if mounted(wanted, at, kinds[at]) {
			all.Set(at, value.NewMap("available", kib(entry.Value("available")), "total", kib(entry.Value("1K-blocks"))))
		}
	}
	return all, nil
}

func mounted(wanted []string, at, kind string) bool {
	for _, w := range wanted {
		if strings.HasPrefix(w, "/") && path.Clean(w) == at || !strings.HasPrefix(w, "/") && value.Glob(w, kind) {
			return true
		}
	}
	return len(wanted) == 0
}

func kib(v any) int {
	n, _ := strconv.Atoi(value.Str(v)) // df prints - for a file system without inodes
	return n * 1024
}

// counters parses the lines of a file of counters.
func (s status) counters(file string, line func(all *value.Map, fields []string)) (*value.Map, error) {
	text, err := function.ReadText(s.Host, file)
	if err != nil {
		return nil, err
	}
	all := value.NewMap()
	for l := range strings.Lines(text) {
		if f := strings.Fields(l); len(f) > 1 {
			line(all, f)
		}
	}
	return all, nil
}

// number returns a counter as a number, or the text if it is not one.
func number(text string) any {
	if n, err := strconv.Atoi(text); err == nil {
		return n
	}
	return text
}

func numbers(fields []string) *value.List {
	list := value.NewList()
	for _, f := range fields {
		list.Append(number(f))
	}
	return list
}

// labelled returns counters under their names; surplus names or counters are dropped.
func labelled(names string, fields []string) *value.Map {
	m := value.NewMap()
	for i, name := range strings.Fields(names) {
		if i < len(fields) {
			m.Set(name, number(fields[i]))
		}
	}
	return m
}

func (s status) diskCounters() (*value.Map, error) {
	return s.counters("/proc/diskstats", func(all *value.Map, f []string) {
		if len(f) < 14 {
			return
		}
		m := labelled(
			`reads_issued reads_merged sectors_read ms_spent_reading writes_completed writes_merged sectors_written ms_spent_writing
			io_in_progress ms_spent_in_io weighted_ms_spent_in_io`, f[3:])
		m.Update(value.NewMap("major", number(f[0]), "minor", number(f[1]), "device", f[2]))
		all.Set(f[2], m)
	})
}

func (s status) processorCounters() (*value.Map, error) {
	return s.counters("/proc/stat", func(all *value.Map, f []string) {
		switch f[0] {
		case "cpu":
			all.Set(f[0], labelled("user nice system idle iowait irq softirq steal", f[1:]))
		case "intr":
			all.Set(f[0], value.NewMap("total", number(f[1]), "irqs", numbers(f[2:])))
		case "softirq":
			all.Set(f[0], value.NewMap("total", number(f[1]), "softirqs", numbers(f[2:])))
		default:
			all.Set(f[0], number(f[1]))
		}
	})
}

func (s status) memoryCounters() (*value.Map, error) {
	return s.counters("/proc/vmstat", func(all *value.Map, f []string) { all.Set(f[0], number(f[1])) })
}

// protocolCounters parses pairs of lines: one with names, and one with numbers.
func (s status) protocolCounters() (*value.Map, error) {
	var names []string
	return s.counters("/proc/net/netstat", func(all *value.Map, f []string) {
		if len(names) == 0 || names[0] != f[0] {
			names = f
			return
		}
		all.Set(strings.TrimSuffix(f[0], ":"), labelled(strings.Join(names[1:], " "), f[1:]))
		names = nil
	})
}

func (s status) linkCounters() (*value.Map, error) {
	text, err := function.ReadText(s.Host, "/proc/net/dev")
	if err != nil {
		return nil, err
	}
	all := value.NewMap()
	for line := range strings.Lines(text) {
		name, rest, ok := strings.Cut(line, ":")
		if f := strings.Fields(rest); ok && len(f) >= 16 {
			m := value.NewMap("iface", strings.TrimSpace(name))
			m.Update(labelled(`rx_bytes rx_packets rx_errs rx_drop rx_fifo rx_frame rx_compressed rx_multicast
				tx_bytes tx_packets tx_errs tx_drop tx_fifo tx_colls tx_carrier tx_compressed`, f))
			all.Set(strings.TrimSpace(name), m)
		}
	}
	return all, nil
}

// sessions returns the users who are logged in, as w(1) lists them.
func (s status) sessions(ctx context.Context) (*value.List, error) {
	out, err := s.Output(ctx, host.Line{Argv: []string{"w", "-fh"}})
	if err != nil {
		return nil, err
	}
	all := value.NewList()
	for line := range strings.Lines(out.Stdout) {
		if f := value.Fields(line, 6); len(f) == 7 {
			all.Append(value.NewMap("user", f[0], "tty", f[1], "login", f[2], "idle", f[3], "jcpu", f[4], "pcpu", f[5], "what",
				strings.TrimSpace(f[6])))
		}
	}
	return all, nil
}
