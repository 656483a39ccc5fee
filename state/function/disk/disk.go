// Package disk implements disk.*: the usage of file systems, from df(1), and block devices, from blkid(8).
package disk

import (
	"context"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// disk runs df(1) and blkid(8).
type disk struct{ *function.Facts }

// Functions returns the functions of disk that templates may call.
func Functions(f *function.Facts) function.Table {
	d := disk{f}
	return function.Table{
		"disk.usage":      function.Of("args=None", d.usage),
		"disk.inodeusage": function.Of("args=None", d.inodes),
		"disk.percent":    function.Of("args=None", d.percent),
		"disk.blkid":      function.Of("device=None, token=None", d.blkid),
	}
}

func (d disk) usage(ctx context.Context, flags string) (*value.Map, error) {
	return d.DiskFree(ctx, flags, "1K-blocks", "used", "available", "capacity")
}

func (d disk) inodes(ctx context.Context, flags string) (*value.Map, error) {
	all, err := d.DiskFree(ctx, "i"+flags, "inodes", "used", "free", "use")
	return all, err
}

// percent returns the usage of all file systems in percent, or that of the one mounted at a directory.
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
	out, err := d.Output(ctx, host.Line{Argv: argv})
	all := value.NewMap()
	if err != nil || out.Code > 0 {
		return all, err
	}
	for line := range strings.Lines(out.Stdout) {
		name, rest, ok := strings.Cut(line, ": ")
		words, err := value.SplitWords(rest)
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
