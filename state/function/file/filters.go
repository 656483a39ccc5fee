package file

import (
	"context"
	"io"
	"path"
	"slices"
	"unicode/utf8"

	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/host/descent"
	"github.com/corpus-agent/corpus-agent/state/jinja"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Filters returns Salt's Jinja filters that read files of the host.
func Filters(f *function.Facts) map[string]jinja.Filter {
	files := file{Facts: f}
	return map[string]jinja.Filter{
		"is_text_file": function.PathFilter("is_text_file", func(p string) any { return files.isText(p) }),
		"is_bin_file":  function.PathFilter("is_bin_file", func(p string) any { return files.isBinary(p) }),
		"is_empty":     function.PathFilter("is_empty", func(p string) any { return files.isEmpty(p) }),
		"list_files":   jinja.Define("list_files", files.listFilter, jinja.Arg("path")),
		"file_hashsum": jinja.Define("file_hashsum", files.hashFilter, jinja.Arg("path"), jinja.Opt("form", "sha256"),
			jinja.Opt("chunk_size", 65536)),
	}
}

func (o file) hashFilter(c *jinja.Call) (any, error) {
	name, err := c.Str(0)
	if err != nil {
		return nil, err
	}
	form, err := c.Str(1)
	if err != nil {
		return nil, err
	}
	return o.sum(c.Context(), o.path(name), form)
}

func (o file) listFilter(c *jinja.Call) (any, error) {
	dir, err := c.Str(0)
	if err != nil {
		return nil, err
	}
	return o.below(c.Context(), dir)
}

// head returns the beginning of a regular file; ok is false for a file that cannot be read.
func (o file) head(name string, size int64) ([]byte, bool) {
	files := o.Host.Files
	if info, err := files.Stat(o.path(name)); err != nil || !info.IsRegular() {
		return nil, false
	}
	f, err := files.Open(o.path(name))
	if err != nil {
		return nil, false
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, size))
	return text, err == nil
}

// isText guesses as Salt does by the first 512 bytes of a file: text has no zero byte, and is UTF-8 or has at most
// three of ten bytes that are neither printable ASCII nor blanks. An empty file is text.
func (o file) isText(name string) bool {
	text, ok := o.head(name, 512)
	return ok && !slices.Contains(text, 0) && (utf8.Valid(text) || !mostlyBinary(text, "\n\r\t\f\b"))
}

// isBinary guesses as Salt does by the first 2,048 bytes of a file. It is not the opposite of isText: it counts
// characters, and takes everything that is not UTF-8 for binary.
func (o file) isBinary(name string) bool {
	text, ok := o.head(name, 2048)
	return ok && len(text) > 0 && (slices.Contains(text, 0) || !utf8.Valid(text) ||
		mostlyBinary([]rune(string(text)), "\n\r\t\b"))
}

// mostlyBinary reports whether more than three of ten characters are neither printable ASCII nor blanks.
func mostlyBinary[C byte | rune](text []C, blanks string) bool {
	other := 0
	for _, c := range text {
		if (c < ' ' || c > '~') && !slices.Contains([]rune(blanks), rune(c)) {
			other++
		}
	}
	return other*10 > len(text)*3
}

func (o file) isEmpty(name string) bool {
	info, err := o.Host.Files.Stat(o.path(name))
	return err == nil && info.Size == 0
}

// below returns the paths of a directory and of everything below it, in order. A link to a directory is listed and
// followed once.
func (o file) below(ctx context.Context, dir string) (*value.List, error) {
	var leftOut error
	files, seen := o.Host.Files, map[any]bool{}
	all := []any{dir}
	var visit func(dir string, level int)
	visit = func(dir string, level int) {
		info, err := files.Stat(o.path(dir))
		if err != nil || !info.IsDir() || seen[info.ID()] {
			return
		}
		if err := descent.Enter(ctx, dir, level); err != nil {
			leftOut = err
			return
		}
		seen[info.ID()] = true
		names, _ := files.ReadDir(o.path(dir)) // a directory that cannot be listed counts as empty, as in Salt
		for _, name := range names {
			all = append(all, path.Join(dir, name))
			visit(path.Join(dir, name), level+1)
		}
	}
	visit(dir, 0)
	return value.NewList(all...), o.complete(ctx, "list_files", leftOut)
}
