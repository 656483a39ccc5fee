package file

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// patch implements file.patch: it applies a patch to a file or to the files of a directory.
//
// The patch program prints the patched file instead of changing the original. Check therefore knows the new
// content, and Apply writes it like any other file: atomically, and recorded for an undo.
type patch struct {
	sourced
	templated
	Name       string `sls:"name"`
	Options    string `sls:"options"`
	RejectFile any    `sls:"reject_file"`
	Strip      *int   `sls:"strip"`

	family *family
	pieces []patched
}

// patched is one file of a patch and its new content.
type patched struct {
	target string
	shown  string // the name in the messages of the patch program
	diff   []byte
	gone   bool // whether the patch removes the file
	new    string
	output []string // the output of the patch program
}

func (p *patch) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	d := module.Diff{Warnings: p.sourced.warnings()}
	if p.RejectFile != nil {
		d.Warnings = append(d.Warnings, "reject_file has no effect: nothing is written if a patch does not apply")
	}
	name, err := absolute(h, "name", p.Name)
	if err != nil {
		return d, err
	}
	p.Name = name
	if err := h.Commands.Allowed("the patch of " + name); err != nil {
		return d, err
	}
	options, strip, err := patchOptions(p.Options, p.Strip)
	if err != nil {
		return d, err
	}
	text, err := p.text(host.To(ctx, host.Recipient{Path: name, UID: -1}))
	if err != nil {
		return d, err
	}
	info, there, err := look(h.Files.Stat, name)
	if err != nil || !there {
		return d, diag.Prerequisite.Hint(orMissing(err, name), "require the state that makes it")
	}
	p.pieces = []patched{{target: name, shown: name, diff: text}}
	if info.IsDir() {
		if p.pieces, err = splitPatch(name, text, strip); err != nil {
			return d, err
		}
	}
	return p.try(ctx, h, options, d)
}

// text returns the patch, rendered if it is a template.
func (p *patch) text(ctx context.Context) ([]byte, error) {
	o, err := p.family.origin(ctx, p.sourced, p.Name)
	if err != nil {
		return nil, err
	}
	data, _, err := p.family.whole(ctx, o, p.templated)
	if err != nil {
		return nil, err
	}
	vars, err := p.vars(value.NewMap("name", p.Name, "source", o.url, "saltenv", o.env))
	if err != nil {
		return nil, err
	}
	return p.family.render(ctx, p.templated, o.url, o.env, data, vars)
}

// try runs the patch program to compute the new content of every file.
func (p *patch) try(ctx context.Context, h *host.Host, options []string, d module.Diff) (module.Diff, error) {
	var output []string
	pid, applied := 0, 0
	for i := range p.pieces {
		piece := &p.pieces[i]
		if info, err := h.Files.Stat(piece.target); err == nil {
			if err := info.Readable(piece.target); err != nil {
				return d, err
			}
		}
		out, err := run(ctx, h, append(slices.Clone(options), "-N", "-r", "-", "-o", "-", piece.target), piece.diff)
		if err != nil {
			return d, err
		}
		if out.Code == 0 {
			piece.new, pid = out.Stdout, out.PID
			piece.output = renamedOutput(out.Stderr, piece.shown)
			output = append(output, piece.output...)
			continue
		}
		back, err := run(ctx, h, append(slices.Clone(options), "-R", "-f", "--dry-run", piece.target), piece.diff)
		if err != nil {
			return d, err
		}
		if back.Code != 0 {
			return d, p.refused(piece, out)
		}
		applied++
	}
	if applied == len(p.pieces) {
		d.Comment = "the patch was applied to " + p.Name + " already"
		return d, nil
	}
	if applied > 0 {
		return d, host.Unsuitable(p.Name, fmt.Errorf("the patch was applied to %d of %d files in %s", applied,
			len(p.pieces), p.Name))
	}
	d.Comment = "would patch " + p.Name
	d.Changes = value.NewMap("pid", pid, "retcode", 0, "stdout", strings.Join(output, "\n"), "stderr", "")
	return d, nil
}

func run(ctx context.Context, h *host.Host, options []string, input []byte) (host.Output, error) {
	out, err := h.Shell(ctx, host.Line{Argv: append([]string{"patch"}, options...), Stdin: string(input), Quiet: true})
	return out, diag.Program.Hint(err, "install the program patch")
}

// renamedOutput returns the output that the patch program would have printed had it changed the file itself.
func renamedOutput(said, shown string) []string {
	var list []string
	for _, line := range value.SplitLines(strings.TrimSpace(said), false) {
		if strings.HasPrefix(line, "patching file - ") {
			line = "patching file " + shown
		}
		list = append(list, line)
	}
	return list
}

func (p *patch) refused(piece *patched, out host.Output) error {
	said := strings.Join(renamedOutput(out.Stderr, piece.shown), "; ")
	return host.Unsuitable(piece.target, diag.Edit.Hint(fmt.Errorf("the patch does not apply to %s: %s", piece.target,
		p.family.seen(said)), "create the patch again from the present file"))
}

func (p *patch) Apply(_ context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	for _, piece := range p.pieces {
		err := func() error {
			if piece.gone && piece.new == "" {
				return h.Files.Remove(piece.target)
			}
			if err := parents(h, piece.target, unchanged()); err != nil {
				return err
			}
			return h.Files.Write(piece.target, host.NewFile{Content: strings.NewReader(piece.new), UID: -1, GID: -1})
		}()
		if err != nil {
			return module.Report{}, fmt.Errorf("patching %s: %w", piece.target, err)
		}
	}
	return module.Report{Changes: d.Changes, Comment: "patched " + p.Name}, nil
}

// splitPatch splits a patch by file. Each name is relative to dir, without its first strip elements.
func splitPatch(dir string, text []byte, strip int) ([]patched, error) {
	var pieces []patched
	all := slices.Collect(bytes.Lines(text))
	start := 0
	for i := range all {
		if !startsFile(all, i) && i > 0 {
			continue
		}
		if i > start && startsFile(all, start) {
			pieces = append(pieces, patched{diff: bytes.Join(all[start:i], nil)})
		}
		start = i
	}
	if startsFile(all, start) {
		pieces = append(pieces, patched{diff: bytes.Join(all[start:], nil)})
	}
	for i := range pieces {
		if err := pieces[i].name(dir, strip); err != nil {
			return nil, err
		}
	}
	if len(pieces) == 0 {
		return nil, diag.Edit.Hint(errors.New("the patch names no files"),
			"it must be a unified diff, as diff -u and git diff print it")
	}
	return pieces, nil
}

// startsFile reports whether the --- and +++ lines of a file start at line i.
func startsFile(lines [][]byte, i int) bool {
	return i+1 < len(lines) && bytes.HasPrefix(lines[i], []byte("--- ")) && bytes.HasPrefix(lines[i+1], []byte("+++ "))
}

// name sets the path of the file that a piece changes.
func (p *patched) name(dir string, strip int) error {
	header := strings.SplitN(string(p.diff), "\n", 3)
	old, new := fileIn(header[0]), fileIn(header[1])
	p.gone = new == "/dev/null"
	name := new
	if p.gone {
		name = old
	}
	parts := strings.Split(strings.Trim(name, "/"), "/")
	if len(parts) <= strip || slices.Contains(parts, "..") {
		return diag.Edit.Hint(fmt.Errorf("the patch names %s, which is not a file in %s", name, dir), "correct strip")
	}
	p.shown = strings.Join(parts[strip:], "/")
	p.target = path.Join(dir, p.shown)
	return nil
}

// fileIn returns the name in a --- or +++ line, without the time after it.
func fileIn(header string) string {
	name, _, _ := strings.Cut(strings.TrimRight(header[4:], "\r"), "\t")
	return name
}
