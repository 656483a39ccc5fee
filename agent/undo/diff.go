package undo

import (
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pmezard/go-difflib/difflib"

	"github.com/corpus-agent/corpus-agent/agent/journal"
	"github.com/corpus-agent/corpus-agent/artifact/structsort"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/image"
	"github.com/corpus-agent/corpus-agent/state/redact"
)

// Difference is the change of one subject.
type Difference struct {
	Run     string `json:"run,omitempty"`
	Step    string `json:"step,omitempty"`
	Subject string `json:"subject"`
	Diff    string `json:"diff,omitempty"` // unified diff, or a description of the change
	Note    string `json:"note,omitempty"` // why Diff is incomplete, or which run undid the change
}

// Changes returns the changes of a run, and the changes of other runs that it undid, in the order of the changes.
func Changes(chapters []*journal.Chapter, run string) []Difference {
	var all []Difference
	show := journal.Redactor(chapters)
	for _, c := range chapters {
		for _, r := range c.Records {
			if r.Run != run && (r.Undone == nil || r.Undone.Run != run) {
				continue
			}
			if d, ok := difference(c, r); ok {
				redact.Each(&d, show)
				all = append(all, d)
			}
		}
	}
	return all
}

// ChangesWithUndo returns the changes of a run, and all changes that another run undid together with them.
func ChangesWithUndo(chapters []*journal.Chapter, run string) []Difference {
	for _, c := range slices.Backward(chapters) {
		for _, r := range slices.Backward(c.Records) {
			if r.Run == run && r.Undone != nil && r.Undone.Run != run {
				return merge(Changes(chapters, run), Changes(chapters, r.Undone.Run))
			}
		}
	}
	return Changes(chapters, run)
}

// merge returns the changes in undone that are not in own, followed by own.
func merge(own, undone []Difference) []Difference {
	others := structsort.Without(undone, func(d Difference) bool { return slices.Contains(own, d) })
	return append(others, own...)
}

func difference(c *journal.Chapter, r *journal.Record) (Difference, bool) {
	d := Difference{Run: r.Run, Step: r.Step, Subject: r.Subject.String()}
	switch {
	case r.Before == nil:
		d.Note = r.Lost
		return d, true
	case r.After == nil:
		d.Note = "its result is not known: the run was interrupted"
		return d, true
	}
	w := writer{subject: r.Subject, secret: r.Secret, old: c, new: c}
	for _, name := range image.Names(*r.Before, *r.After) {
		w.part(r.Before.Part(name), r.After.Part(name))
	}
	d.Diff = w.b.String()
	if r.Undone != nil && r.Undone.Left == "" {
		d.Note = "undone by run " + r.Undone.Run
	}
	return d, d.Diff != ""
}

// Differences returns the changes that the plan would make on h.
func (p *Plan) Differences(h *host.Host) []Difference {
	var all []Difference
	for _, a := range p.Actions {
		d := Difference{Step: a.Step, Subject: a.Subject.String()}
		w := writer{subject: a.Subject, secret: a.Secret, live: h}
		for _, part := range a.Parts {
			w.new = part.chapter
			w.part(part.Now, part.Want)
		}
		d.Diff = w.b.String()
		redact.Each(&d, p.show)
		all = append(all, d)
	}
	return all
}

// writer writes the Diff of one subject.
type writer struct {
	subject  host.Subject
	secret   bool
	old, new *journal.Chapter // the chapters with the content before and after
	live     *host.Host       // the host with the old content; nil if old has it
	b        strings.Builder
}

func (w *writer) line(format string, args ...any) { fmt.Fprintf(&w.b, format+"\n", args...) }

func (w *writer) part(from, to image.Part) {
	if from.Same(to) {
		return
	}
	switch {
	case from.Type == image.Value || to.Type == image.Value:
		w.value(from, to)
	case from.Type == image.Line || to.Type == image.Line:
		w.line("--- %s\n+++ %s\n@@ %s @@ not shown: accounts have secrets", diag.OneLine(from.Name), diag.OneLine(to.Name),
			lineChange(from, to))
	default:
		w.path(from, to)
	}
}

func lineChange(from, to image.Part) string {
	switch {
	case from.Type == image.Absent:
		return "a line is new"
	case to.Type == image.Absent:
		return "a line is gone"
	}
	return "a line differs"
}

func (w *writer) value(from, to image.Part) {
	if w.secret {
		w.line("  %s differs, and is not shown", to.Name)
		return
	}
	for _, side := range []struct{ sign, text string }{{"-", from.Text}, {"+", to.Text}} {
		if side.text != "" {
			w.line("%s%s: %s", side.sign, to.Name, side.text)
		}
	}
}

// path compares two states of a path: first the type, then mode, owner and attributes, then the content.
func (w *writer) path(from, to image.Part) {
	w.line("--- %s\n+++ %s", side(from), side(to))
	if from.Type != to.Type || from.Type == image.Link {
		for _, d := range []struct {
			sign string
			part image.Part
		}{{"-", from}, {"+", to}} {
			if text := w.describe(d.part); text != "" {
				w.line("%s%s", d.sign, text)
			}
		}
	}
	if from.Type != image.Absent && to.Type != image.Absent && from.Type != image.Link && to.Type != image.Link {
		w.metadata(from, to)
	}
	if from.Sum != to.Sum {
		w.content(from, to)
	}
}

func side(p image.Part) string {
	if p.Type == image.Absent {
		return "/dev/null"
	}
	return diag.OneLine(p.Name)
}

// describe describes a path that is not a regular file.
func (w *writer) describe(p image.Part) string {
	switch p.Type {
	case image.Link:
		if w.secret {
			return "link, whose target is not shown"
		}
		return "link to " + diag.OneLine(p.Text)
	case image.Directory:
		return fmt.Sprintf("directory %04o %d:%d", mode(p), p.UID, p.GID)
	case image.Special:
		return "pipe, socket or device"
	}
	return ""
}

func mode(p image.Part) uint32 {
	m := fs.FileMode(p.Mode)
	bits := uint32(m.Perm())
	for bit, raw := range map[fs.FileMode]uint32{fs.ModeSetuid: 0o4000, fs.ModeSetgid: 0o2000, fs.ModeSticky: 0o1000} {
		if m&bit != 0 {
			bits |= raw
		}
	}
	return bits
}

func (w *writer) metadata(from, to image.Part) {
	if from.Mode != to.Mode {
		w.line("-mode %04o\n+mode %04o", mode(from), mode(to))
	}
	if from.UID != to.UID || from.GID != to.GID {
		w.line("-owner %d:%d\n+owner %d:%d", from.UID, from.GID, to.UID, to.GID)
	}
	names := slices.Concat(slices.Collect(maps.Keys(from.Xattrs)), slices.Collect(maps.Keys(to.Xattrs)))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		was, had := from.Xattrs[name]
		is, has := to.Xattrs[name]
		if had && has && string(was) == string(is) {
			continue
		}
		if had {
			w.line("-attribute %s %s", name, base64.StdEncoding.EncodeToString(was))
		}
		if has {
			w.line("+attribute %s %s", name, base64.StdEncoding.EncodeToString(is))
		}
	}
}

// content compares the content of a file.
func (w *writer) content(from, to image.Part) {
	if w.secret {
		w.line("@@ content @@ not shown: it is not readable by everyone, or its state does not show it")
		return
	}
	before, ok := w.text(from, w.live, w.old)
	after, ok2 := w.text(to, nil, w.new)
	if !ok || !ok2 {
		w.line("@@ content @@ %s, now %s", diag.Size(from.Size), diag.Size(to.Size))
		return
	}
	diff, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{A: lines(before), B: lines(after), Context: 3})
	if err == nil {
		w.b.WriteString(diff)
	}
}

// lines splits a text into lines. Like diff(1), it marks a last line without a newline.
func lines(text string) []string {
	all := slices.Collect(strings.Lines(text))
	if n := len(all); n > 0 && !strings.HasSuffix(all[n-1], "\n") {
		all[n-1] += "\n\\ No newline at end of file\n"
	}
	return all
}

// maxText is the size in bytes of the longest content that is compared.
const maxText = 256 << 10

// text reads the content of p. It returns false if the content is too long, not available, or not text.
func (w *writer) text(p image.Part, live *host.Host, c *journal.Chapter) (string, bool) {
	if p.Sum == "" || p.Size == 0 {
		return "", true
	}
	if p.Size > maxText {
		return "", false
	}
	var data []byte
	var err error
	switch {
	case live != nil:
		data, err = live.Files.ReadFile(p.Name)
	case c == nil || len(p.Pieces) == 0:
		return "", false
	default:
		var r io.ReadCloser
		if r, err = c.Open(p.Pieces); err == nil {
			data, err = io.ReadAll(r)
			_ = r.Close()
		}
	}
	return string(data), err == nil && utf8.Valid(data) && !strings.Contains(string(data), "\x00")
}

// String returns d as text, with a line that names the subject before the diff.
func (d Difference) String() string {
	var b strings.Builder
	b.WriteString("# " + d.Subject)
	if d.Step != "" {
		b.WriteString(" (" + d.Step + ")")
	}
	if d.Note != "" {
		b.WriteString(": " + d.Note)
	}
	return b.String() + "\n" + d.Diff
}
