package function

import (
	"context"
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// disk asks df(1) and blkid(8).
type disk struct{ *Facts }

func diskTable(f *Facts) Table {
	d := disk{f}
	return Table{
		"disk.usage":      Of("args=None", d.usage),
		"disk.inodeusage": Of("args=None", d.inodes),
		"disk.percent":    Of("args=None", d.percent),
		"disk.blkid":      Of("device=None, token=None", d.blkid),
	}
}

// df gives the columns of df, by the directory where a file system is mounted.
func (d disk) df(ctx context.Context, flags string, columns ...string) (*value.Map, error) {
	if i := strings.IndexFunc(flags, func(r rune) bool { return !strings.ContainsRune("aBhHiklPtTxv", r) }); i >= 0 {
		return nil, fmt.Errorf("df has no flag %c that would do here", flags[i])
	}
	out, err := d.ask(ctx, host.Line{Argv: []string{"df", "-P" + flags}})
	if err != nil {
		return nil, err
	}
	all := value.NewMap()
	for line := range strings.Lines(out.Stdout) {
		f := strings.Fields(line)
		if strings.HasPrefix(line, "Filesystem") || len(f) < len(columns)+2 {
			continue
		}
		// A name may hold spaces: columns count from the end.
		rest := len(f) - len(columns) - 1
		entry := value.NewMap("filesystem", strings.Join(f[:rest], " "))
		for i, column := range columns {
			entry.Set(column, f[rest+i])
		}
		all.Set(f[len(f)-1], entry)
	}
	return all, nil
}

func (d disk) usage(ctx context.Context, flags string) (*value.Map, error) {
	return d.df(ctx, flags, "1K-blocks", "used", "available", "capacity")
}

func (d disk) inodes(ctx context.Context, flags string) (*value.Map, error) {
	all, err := d.df(ctx, "i"+flags, "inodes", "used", "free", "use")
	return all, err
}

// percent is how full the file systems are, or the one mounted at a directory.
func (d disk) percent(ctx context.Context, at string) (any, error) {
	all, err := d.usage(ctx, "")
	full := value.NewMap()
	for _, mounted := range all.Names() {
		full.Set(mounted, all.Value(mounted).(*value.Map).Value("capacity"))
	}
	if at == "" || err != nil {
		return full, err
	}
	if v, ok := full.Get(at); ok {
		return v, nil
	}
	return value.NewMap(), nil
}

func (d disk) blkid(ctx context.Context, device, token string) (*value.Map, error) {
	argv := []string{"blkid"}
	switch {
	case device != "":
		argv = append(argv, device)
	case token != "":
		argv = append(argv, "-t", token)
	}
	out, err := d.ask(ctx, host.Line{Argv: argv})
	all := value.NewMap()
	if err != nil || out.Code > 0 {
		return all, err
	}
	for line := range strings.Lines(out.Stdout) {
		name, rest, ok := strings.Cut(line, ": ")
		words, err := splitWords(rest)
		if !ok || err != nil {
			continue
		}
		entry := value.NewMap()
		for _, word := range words {
			key, v, _ := strings.Cut(word, "=")
			entry.Set(key, v)
		}
		all.Set(name, entry)
	}
	return all, nil
}
