// Package image takes snapshots of objects of a host, such as files and accounts, before they change, to compare and
// restore them later.
//
// An image consists of parts, such as the files of a tree or the lines of an account. Each part is compared and
// restored separately, so that a restore that was interrupted by a power failure can be repeated. All access goes
// through state/host.
package image

import (
	"bytes"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/corpus-agent/corpus-agent/state/host"
)

// Image describes a subject at one moment. A part that another image of the subject has and this one lacks was absent
// at that moment.
type Image struct {
	Parts []Part `json:"parts"`
}

// Type is the type of a part.
type Type string

// The types of parts.
const (
	Absent    Type = "absent"
	File      Type = "file"
	Directory Type = "directory"
	Link      Type = "link"
	Special   Type = "special" // a pipe, socket or device, which cannot be restored
	Line      Type = "line"    // a line of an account file
	Value     Type = "value"   // a setting that is not a file
)

// Part is one part of an image. Fields that its type does not use are zero.
type Part struct {
	Name     string `json:"name"` // a path, an account file, or the name of a property of the subject
	Type     Type   `json:"type"`
	Mode     uint32 `json:"mode,omitempty"` // Go's bits
	UID      int    `json:"uid,omitempty"`
	GID      int    `json:"gid,omitempty"`
	Modified int64  `json:"modified,omitempty"` // of a file, in nanoseconds since 1970
	Size     int64  `json:"size,omitempty"`
	// SHA-256 of the content; of a large file with holes, its size and time instead
	Sum    string            `json:"sum,omitempty"`
	Xattrs map[string][]byte `json:"xattrs,omitempty"`
	Text   string            `json:"text,omitempty"`   // target of a link, a value, or the name before a line
	Pieces []string          `json:"pieces,omitempty"` // the stored pieces of the content
	Lost   string            `json:"lost,omitempty"`   // why the content is not kept
}

// Same reports whether two parts are the same to their users. It ignores the time of the last write of a file.
func (p Part) Same(q Part) bool {
	return p.Type == q.Type && p.Mode == q.Mode && p.UID == q.UID && p.GID == q.GID && p.Size == q.Size &&
		p.Sum == q.Sum &&
		p.sameText(q) && maps.EqualFunc(p.Xattrs, q.Xattrs, bytes.Equal)
}

// sameText compares texts. It ignores the name before a line, which is only the position of the line.
func (p Part) sameText(q Part) bool { return p.Type == Line || p.Text == q.Text }

// Identical is like Same, but also compares the time of the last write of a file.
func (p Part) Identical(q Part) bool {
	return p.Same(q) && (p.Type != File || p.Modified == q.Modified)
}

// sameContent reports whether two parts are files with the same content.
func (p Part) sameContent(q Part) bool { return p.Type == File && q.Type == File && p.Sum == q.Sum }

// Kept reports whether a part can be restored: its content is stored, or equals that of the present part.
func (p Part) Kept(now Part) bool { return p.Lost == "" || now.sameContent(p) }

// Part returns the part with a name; a missing one has the type Absent.
func (i Image) Part(name string) Part {
	for _, p := range i.Parts {
		if p.Name == name {
			return p
		}
	}
	return Part{Name: name, Type: Absent}
}

// Same reports whether two images have the same parts.
func (i Image) Same(j Image) bool {
	for _, name := range Names(i, j) {
		if !i.Part(name).Same(j.Part(name)) {
			return false
		}
	}
	return true
}

// Names lists the parts of several images, sorted.
func Names(images ...Image) []string {
	var all []string
	for _, i := range images {
		for _, p := range i.Parts {
			all = append(all, p.Name)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Keeper keeps content.
type Keeper interface {
	// Keep stores content and returns its pieces, or in lost the reason why it did not. It expects size bytes.
	Keep(r io.Reader, size int64) (pieces []string, lost string, err error)
}

// Content opens stored content.
type Content interface {
	Open(pieces []string) (io.ReadCloser, error)
}

// CanBePutBack reports whether images of such a subject can be taken and restored.
func CanBePutBack(kind host.Kind) bool {
	return slices.Contains([]host.Kind{host.KindFile, host.KindTree, host.KindUser, host.KindGroup, host.KindUnit,
		host.KindBoot, host.KindPackage,
		host.KindHostname, host.KindSysctl, host.KindMount, host.KindAlternative, host.KindKernelModule}, kind)
}

func nanoseconds(t time.Time) int64 { return t.UnixNano() }
