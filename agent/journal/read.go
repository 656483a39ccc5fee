package journal

import (
	"bufio"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/image"
)

// Chapter is the decoded content of a chapter.
type Chapter struct {
	Header
	Number  int
	Runs    []string // IDs of the runs that changed something, oldest first
	Records []*Record
	Torn    bool // the last frame is incomplete, because of a power failure

	path     string
	written  time.Time // when the file was last written
	end      int64     // offset of the end of the last whole frame
	last     sum
	pieces   map[string]place
	boot     string             // boot ID of the last run
	planned  map[string]Planned // paths that the last run may have created without a record
	order    []string           // the paths that were planned, in the order of their steps
	guarding string             // the steps whose guards ran when the chapter ended; "" for none
}

// place is the offset and the length of a compressed piece in the file.
type place struct{ at, length int64 }

// The bodies of frames.
type (
	runBody struct {
		ID   string
		Boot string `json:",omitempty"`
	}
	afterBody struct {
		Seq    int         `json:"seq"`
		After  image.Image `json:"after"`
		Secret bool        `json:"secret,omitempty"`
		Shown  Names       `json:"shown,omitempty"`
	}
	againBody struct {
		Seq int `json:"seq"`
	}
	begunBody struct {
		Seq int    `json:"seq"`
		Run string `json:"run"`
	}
	undoneBody struct {
		Seq int `json:"seq"`
		Undone
	}
)

// read reads a chapter. Its error is a *Damaged or a *Newer if the content of the file is the cause.
func (j Journal) read(number int) (*Chapter, error) {
	c := &Chapter{Number: number, path: j.path(number), pieces: map[string]place{}, planned: map[string]Planned{}}
	f, err := walk.OpenFile(c.path)
	if err != nil {
		return nil, unread(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, unread(err)
	}
	c.written = info.ModTime()
	return c, c.load(f)
}

func (c *Chapter) load(r io.Reader) error {
	f := &frames{r: bufio.NewReaderSize(r, 64<<10)}
	err := f.open()
	for err == nil {
		var k kind
		var body []byte
		at := f.at
		if k, body, err = f.next(); err == nil {
			if err = c.apply(k, body, at); err != nil {
				err = &Damaged{Path: c.path, At: at}
			}
		}
	}
	c.end, c.last = f.at, f.last
	var newer newerVersion
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case errors.Is(err, errTorn):
		c.Torn = true
		return nil
	case errors.Is(err, errChanged):
		return &Damaged{Path: c.path, At: f.at}
	case errors.As(err, &newer):
		return &Newer{Path: c.path, Version: int(newer)}
	}
	return err
}

var errBody = errors.New("a frame is not valid")

// apply adds a frame, which starts at offset at, to the chapter.
func (c *Chapter) apply(k kind, body []byte, at int64) error {
	switch k {
	case kindHeader:
		return json.Unmarshal(body, &c.Header)
	case kindRun:
		var b runBody
		err := json.Unmarshal(body, &b)
		c.Runs, c.boot, c.guarding = append(c.Runs, b.ID), b.Boot, ""
		return err
	case kindPiece:
		if len(body) < sumSize {
			return errBody
		}
		c.pieces[hex.EncodeToString(body[:sumSize])] = place{at + headSize + sumSize, int64(len(body)) - sumSize}
		return nil
	case kindChange:
		return c.applyChange(body)
	case kindPlanned:
		var b Planned
		err := json.Unmarshal(body, &b)
		if b.Path == guardPath {
			c.guarding = b.Step
			return err
		}
		c.planned[b.Path], c.order = b, append(c.order, b.Path)
		return err
	case kindSynced:
		for _, r := range c.Records {
			r.Synced = true
		}
		clear(c.planned)
		return nil
	}
	return c.applyUpdate(k, body)
}

func (c *Chapter) applyChange(body []byte) error {
	r := &Record{Chapter: c.Number, Seq: len(c.Records)}
	if len(c.Runs) == 0 {
		return errBody
	}
	r.Run, r.Boot = c.Runs[len(c.Runs)-1], c.boot
	c.Records = append(c.Records, r)
	err := json.Unmarshal(body, &r.Change)
	delete(c.planned, r.Subject.Name)
	return err
}

// applyUpdate applies a frame that updates an earlier record.
func (c *Chapter) applyUpdate(k kind, body []byte) error {
	var which struct {
		Seq *int `json:"seq"`
	}
	if err := json.Unmarshal(body, &which); err != nil || which.Seq == nil || *which.Seq < 0 ||
		*which.Seq >= len(c.Records) {
		return errBody
	}
	r := c.Records[*which.Seq]
	switch k {
	case kindAfter:
		var b afterBody
		err := json.Unmarshal(body, &b)
		r.After, r.Secret, r.Synced = &b.After, r.Secret || b.Secret, false
		r.addShown(b.Shown)
		return err
	case kindAgain:
		r.After = nil
		return nil
	case kindBegun:
		r.Begun = true
		return nil
	case kindUndone:
		var b undoneBody
		err := json.Unmarshal(body, &b)
		r.Undone = &b.Undone
		return err
	}
	return errBody
}

// InterruptedStep returns the step in which the interrupted run made its last change, or whose guard ran after that. It
// returns "" if the run changed nothing, or is not the last run. The names of steps that ran in parallel are joined. A
// planned path that exists was created after all recorded changes. A program that runs before states do, such as a
// pre-release hook, does not count as a change after it has ended.
func (c *Chapter) InterruptedStep(run string, h *host.Host) string {
	if len(c.Runs) == 0 || c.Runs[len(c.Runs)-1] != run {
		return ""
	}
	if c.guarding != "" {
		return c.guarding
	}
	for _, name := range slices.Backward(c.order) {
		plan, open := c.planned[name]
		if _, err := h.Files.Lstat(name); open && err == nil {
			return plan.Step
		}
	}
	for _, r := range slices.Backward(c.Records) {
		if r.Run != run {
			break
		}
		if !r.preparation() {
			return strings.TrimSpace(r.Step + " " + programOf(r))
		}
	}
	return ""
}

// OpenStep returns the step that the last run has begun and not ended, and when the chapter was last written; "" if
// there is none, or if that run began before the run with the ID oldest would have.
func (c *Chapter) OpenStep(oldest string) (step string, since time.Time) {
	if len(c.Runs) == 0 || c.Runs[len(c.Runs)-1] < oldest {
		return "", since
	}
	if n := len(c.Records); n > 0 && c.Records[n-1].Run == c.Runs[len(c.Runs)-1] && c.Records[n-1].After == nil {
		step = strings.TrimSpace(c.Records[n-1].Step + " " + programOf(c.Records[n-1]))
	}
	return cmp.Or(c.guarding, step), c.written
}

// preparation reports whether r is the record of a program that runs before states do, and that has ended.
func (r *Record) preparation() bool {
	if r.Before != nil || r.After == nil {
		return false
	}
	switch r.Step {
	case "hooks":
		return r.Subject.Name != "post-release"
	case "procedure release-sync", "procedure archive", "procedure fixperms":
		return true
	}
	return false
}

// programOf returns the name of the hook or engine of r, since their step does not contain it, and "" for other steps.
func programOf(r *Record) string {
	if r.Step == "hooks" || r.Step == "engine" {
		return r.Subject.Name
	}
	return ""
}

// Live returns the records that no restore has settled.
func (c *Chapter) Live() []*Record {
	return slices.DeleteFunc(slices.Clone(c.Records), func(r *Record) bool { return r.Undone != nil })
}
