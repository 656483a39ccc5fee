package file

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
)

// blockReplace implements file.blockreplace: it sets the lines between two markers.
type blockReplace struct {
	textual
	block
	Name        string `sls:"name"`
	ID          string `sls:"__id__"`
	Backup      any    `sls:"backup"`
	ShowChanges bool   `sls:"show_changes"`

	family *family
	edit   edit
}

func newBlockReplace(f *family) *blockReplace {
	return &blockReplace{
		textual: textual{templated: templated{Template: "jinja"}}, ShowChanges: true, Backup: ".bak", family: f,
		block: block{Start: "#-- start managed zone --", End: "#-- end managed zone --"},
	}
}

func (b *blockReplace) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	if err := b.block.Valid(); err != nil {
		return module.Diff{}, err
	}
	var err error
	if b.edit, err = b.family.openEdit(h, b.Name); err != nil {
		return module.Diff{}, err
	}
	if err := b.edit.asText(); err != nil {
		return module.Diff{}, err
	}
	content := b.Content
	for _, line := range b.family.accumulated.lines(b.edit.name, b.ID) {
		if content != "" {
			content += "\n"
		}
		content += line
	}
	texts, err := b.textual.texts(ctx, b.family, b.edit.name)
	if err != nil {
		return module.Diff{}, err
	}
	content += strings.Join(texts, "")
	before := lines(string(b.edit.before))
	after, err := b.block.apply(before, content)
	if err != nil {
		return module.Diff{}, fmt.Errorf("editing %s: %w", b.edit.name, b.edit.blame(err))
	}
	return b.edit.diff(readableAll(before), after, b.ShowChanges), nil
}

func (b *blockReplace) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	return b.edit.apply(ctx, h, d, suffix(b.Backup))
}

// block holds the arguments that identify a block and that say where a new one is inserted.
type block struct {
	Start       string `sls:"marker_start"`
	End         string `sls:"marker_end"`
	Content     string `sls:"content"`
	Append      bool   `sls:"append_if_not_found"`
	Prepend     bool   `sls:"prepend_if_not_found"`
	Newline     *bool  `sls:"append_newline"` // nil: add a newline if content does not end with one
	BeforeMatch string `sls:"insert_before_match"`
	BehindMatch string `sls:"insert_after_match"`
}

func (b *block) Valid() error {
	places := 0
	for _, given := range []bool{b.Append, b.Prepend, b.BeforeMatch != "", b.BehindMatch != ""} {
		if given {
			places++
		}
	}
	switch {
	case places > 1:
		return diag.Contradiction.Hint(errors.New("more than one argument says where a new block goes"),
			"keep one of append_if_not_found, prepend_if_not_found, insert_before_match and insert_after_match")
	case b.Start == "" || b.End == "":
		return errors.New("a marker is empty")
	}
	return nil
}

// apply returns the lines with content in every block that has these markers. Without such a block it adds one.
func (b *block) apply(before []string, content string) ([]string, error) {
	end := "\n"
	if len(before) > 0 {
		end = orNewline(ending(before[0]))
	}
	var after []string
	inside, found := false, false
	for _, line := range before {
		switch at := strings.Index(line, b.End); {
		case strings.Contains(line, b.Start):
			inside = true
			after = append(after, line)
		case inside && at >= 0:
			inside, found = false, true
			after = append(after, b.fill(content, line[at:], end)...)
		case !inside:
			after = append(after, line)
		}
	}
	switch {
	case inside:
		return nil, unfit{diag.Edit.Hint(fmt.Errorf("the block that starts with %s has no end", b.Start),
			"add the line %s to the file, or correct marker_end", b.End)}
	case found:
		return after, nil
	}
	return b.add(after, append([]string{b.Start + end}, b.fill(content, b.End, end)...))
}

// fill returns the lines of a block after its start marker, up to and including the end marker last.
func (b *block) fill(content, last, end string) []string {
	last = bare(last) + end
	list := strings.Split(strings.ReplaceAll(content, "\r\n", "\n"), "\n")
	for i := range list[:len(list)-1] {
		list[i] += end
	}
	newline := !strings.HasSuffix(content, "\n")
	if b.Newline != nil {
		newline = *b.Newline
	}
	if newline {
		list[len(list)-1] += end
		return append(list, last)
	}
	list[len(list)-1] += last
	return list
}

// add inserts a new block where the arguments place it.
func (b *block) add(after, made []string) ([]string, error) {
	switch {
	case b.Prepend:
		return append(made, after...), nil
	case b.Append:
		if last := len(after) - 1; last >= 0 && ending(after[last]) == "" {
			after[last] += ending(made[0])
		}
		return append(after, made...), nil
	}
	pattern := b.BeforeMatch + b.BehindMatch
	if pattern != "" {
		e := &lineEditor{lines: after}
		found, err := e.find(&pattern)
		if err != nil {
			return nil, err
		}
		if len(found) > 0 && b.BehindMatch != "" {
			return slices.Insert(after, found[0]+1, made...), nil
		}
		if len(found) > 0 {
			return slices.Insert(after, found[0], made...), nil
		}
	}
	return nil, unfit{diag.Edit.Hint(fmt.Errorf("there is no block from %s to %s", b.Start, b.End),
		"set append_if_not_found: True, or add the markers")}
}
