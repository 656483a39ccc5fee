package unpack

import (
	"context"
	"errors"
	"io"
	"io/fs"

	"github.com/corpus-agent/corpus-agent/artifact"
)

// Peek reads one file from an archive, by its name in the release, and stops there. It writes nothing. The error is
// fs.ErrNotExist if the archive has no such file. A file of more than most bytes is an error. A zip archive must be
// read from a *bytes.Reader or an *io.SectionReader.
func Peek(ctx context.Context, r io.Reader, format artifact.Format, name string, most int64) ([]byte, error) {
	rules := newRules(Limits{}.withDefaults(), 0)
	to := &peek{name: name, most: most}
	var err error
	if format != artifact.Zip {
		err = walkTar(ctx, rules.growth.countPacked(r), format, rules, to)
	} else if all, ok := r.(sized); ok {
		rules.growth.packed = all.Size()
		err = walkZip(ctx, all, rules, to)
	} else {
		err = errors.New("a zip archive cannot be read from its start to its end")
	}
	switch {
	case to.found && to.err == nil:
		return to.data, nil
	case to.found:
		return nil, to.err
	case err != nil:
		return nil, err
	}
	return nil, fs.ErrNotExist
}

// peek is a target that keeps one file.
type peek struct {
	discard
	name  string
	most  int64
	found bool
	data  []byte
	err   error
}

// errPeeked ends the walk.
var errPeeked = errors.New("the file was found")

func (p *peek) file(e entry, content io.Reader) error {
	if e.name != p.name {
		return p.discard.file(e, content)
	}
	p.found = true
	p.data, p.err = io.ReadAll(io.LimitReader(content, p.most+1))
	if p.err == nil && int64(len(p.data)) > p.most {
		p.err = errors.New(p.name + " is too large")
	}
	return errPeeked
}
