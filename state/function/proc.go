package function

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// DiskFree returns the columns of df, by the directory where a file system is mounted.
func (f *Facts) DiskFree(ctx context.Context, flags string, columns ...string) (*value.Map, error) {
	if i := strings.IndexFunc(flags, func(r rune) bool { return !strings.ContainsRune("aBhHiklPtTxv", r) }); i >= 0 {
		return nil, fmt.Errorf("the flag %c of df is not supported here", flags[i])
	}
	out, err := f.Output(ctx, host.Line{Argv: []string{"df", "-P" + flags}})
	if err != nil {
		return nil, err
	}
	all := value.NewMap()
	for line := range strings.Lines(out.Stdout) {
		words := strings.Fields(line)
		if strings.HasPrefix(line, "Filesystem") || len(words) < len(columns)+2 {
			continue
		}
		// A name may contain spaces, so columns are counted from the end.
		rest := len(words) - len(columns) - 1
		entry := value.NewMap("filesystem", strings.Join(words[:rest], " "))
		for i, column := range columns {
			entry.Set(column, words[rest+i])
		}
		all.Set(words[len(words)-1], entry)
	}
	return all, nil
}

// PIDs returns the numbers of the running processes, in order.
func (f *Facts) PIDs() ([]any, error) {
	names, err := f.Host.Files.ReadDir("/proc")
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

// ProcessName returns the name, or the whole command line, of the process with a directory in /proc.
func (f *Facts) ProcessName(dir string, full bool) string {
	if full {
		text, _ := ReadText(f.Host, dir+"/cmdline") // the process may have ended
		return strings.TrimSpace(strings.ReplaceAll(text, "\x00", " "))
	}
	text, _ := ReadText(f.Host, dir+"/comm")
	return strings.TrimSpace(text)
}

// ProcessOwner returns the user of the process with a directory in /proc; nil if it has ended.
func (f *Facts) ProcessOwner(dir string) any {
	info, err := f.Host.Files.Stat(dir)
	if err != nil {
		return nil
	}
	return f.UserName(info.UID)
}

// MemInfo returns the values of /proc/meminfo, by name.
func (f *Facts) MemInfo() (*value.Map, error) {
	text, err := ReadText(f.Host, "/proc/meminfo")
	m := value.NewMap()
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) < 2 {
			continue
		}
		entry := value.NewMap("value", words[1])
		if len(words) > 2 {
			entry.Set("unit", words[2])
		}
		m.Set(strings.TrimSuffix(words[0], ":"), entry)
	}
	return m, err
}

// CountProcessors returns the number of processors of the host.
func (f *Facts) CountProcessors() (int, error) {
	text, err := ReadText(f.Host, "/proc/cpuinfo")
	n := 0
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "processor") {
			n++
		}
	}
	return n, err
}
