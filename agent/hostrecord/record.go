// Package hostrecord keeps the current record of each host in a store: a small object whose name holds the health of
// the host.
//
// A reader of the whole fleet needs no request for each host: one listing has a thousand names, and a name has
// everything that a table of the fleet shows. The host signs the name, so that a record is valid for no other host and
// no other state; see package hostkey. The object itself holds what only a page about the host shows: the error and its
// hint.
//
// A host writes its record after each run and then deletes the one before. If there are several, because of a power
// failure between the two or since the host may not delete, the one of the latest run is used.
//
// A host that cannot write to its own disk cannot remember which records to delete. It writes a failure object instead,
// whose key is always the same; see Writer.WriteFailure. It overrules the records that the store received before it.
package hostrecord

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/hostkey"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/store"
)

// Prefix is the key prefix of the records in a store, whose keys are fleet/PROJECT/HOST/... The records of one project
// can be listed without the others.
const Prefix = "fleet/"

// PrefixOf returns the key prefix of the records of a project's hosts; for "", that of all projects.
func PrefixOf(project string) string {
	if project == "" {
		return Prefix
	}
	return Prefix + project + "/"
}

// Place is a release on a host, with the channel that it came from.
type Place struct {
	Channel string `json:"channel,omitempty"`
	Version string `json:"version"`
	Digest  string `json:"digest"` // its start; see artifact.Digest.Short
}

// Is reports whether the place may have the release with this digest.
func (p *Place) Is(d artifact.Digest) bool {
	return p != nil && p.Digest != "" && p.Digest == d.Short()
}

// same reports whether two places are the same release. It is false if one of them is nil.
func (p *Place) same(other *Place) bool {
	return p != nil && other != nil && p.Digest == other.Digest
}

// Record describes a host after its newest run.
type Record struct {
	Project  string `json:"project"`
	Host     string `json:"host"`
	Run      string `json:"run"`      // its ID, which begins with its start time, by the host's clock
	Sequence int64  `json:"sequence"` // of the run among those of the host
	Outcome  string `json:"outcome"`  // as in the report, with dashes
	Exit     int    `json:"exit_code"`
	Flags

	Agent string `json:"agent,omitempty"` // version of the program
	Form  int    `json:"reads_form"`      // newest form of projects' metadata that it reads

	// The deployed releases; nil if there are none. Channel is also set if nothing of the channel was deployed yet.
	Service *Place `json:"service,omitempty"`
	Base    *Place `json:"base,omitempty"`
	// The releases that the run tried or the channels name, if they are not deployed; nil otherwise.
	Wanted     *Place `json:"wanted,omitempty"`
	WantedBase *Place `json:"wanted_base,omitempty"`
}

// Flags are properties of a host in addition to the outcome of its run.
type Flags struct {
	Held        bool `json:"held,omitempty"`
	Quarantined bool `json:"quarantined,omitempty"` // what the channels name is in quarantine
	Drifted     bool `json:"drifted,omitempty"`     // the run corrected drift
	Unserved    bool `json:"unserved,omitempty"`    // units do not run what is deployed
	OtherRoot   bool `json:"other_root,omitempty"`  // the run worked below another root
	Expiring    bool `json:"expiring,omitempty"`    // signatures of the store expire soon
	Unseeing    bool `json:"unseeing,omitempty"`    // the store did not show it the results of its rollout
	OfBase      bool `json:"of_base,omitempty"`     // what failed, or is in quarantine, is base and not the service
	AlsoBase    bool `json:"also_base,omitempty"`   // base is in quarantine as well as the service
	Excused     bool `json:"excused,omitempty"`     // the run failed only in states that may fail
}

// letters returns the flags by the letters that stand for them in a name.
func (f *Flags) letters() map[string]*bool {
	return map[string]*bool{
		"h": &f.Held, "q": &f.Quarantined, "d": &f.Drifted, "u": &f.Unserved, "o": &f.OtherRoot, "x": &f.Expiring,
		"e": &f.Unseeing, "b": &f.OfBase, "a": &f.AlsoBase, "m": &f.Excused,
	}
}

func (f *Flags) text() string {
	text, known := "", f.letters()
	for _, letter := range strings.Split("hqduoxebam", "") {
		if *known[letter] {
			text += letter
		}
	}
	return text
}

func (f *Flags) parse(text string) {
	known := f.letters()
	for _, letter := range strings.Split(text, "") {
		if flag := known[letter]; flag != nil { // a newer agent may have others
			*flag = true
		}
	}
}

// RunTime is the layout of the ID of a run: the time at which it started, in UTC.
const RunTime = "20060102T150405.000000"

// Started returns the time when the run of the record started, by the host's clock; zero if its ID has no time.
func (r *Record) Started() time.Time {
	at, err := time.Parse(RunTime, r.Run)
	if err != nil {
		return time.Time{}
	}
	return at
}

const suffix = ".json"

// longestSegment bounds the bytes of a path segment of a name; longer names continue in another segment. File systems
// allow 255.
const longestSegment = 240

// text returns the text of a record that the host signs. Fields that change rarely come first, so that few directories
// of long names remain in a directory store when a record is deleted.
func (r *Record) text() string {
	return join(slices.Concat(
		r.Service.fields(true), r.Base.fields(true), r.Wanted.fields(false), r.WantedBase.fields(false),
		[]string{r.Run, strconv.FormatInt(r.Sequence, 10), r.Outcome, strconv.Itoa(r.Exit), r.Flags.text(), r.Agent,
			strconv.Itoa(r.Form)})...)
}

// signed returns what the host signs: the text with the project and the host.
func signed(project, host, text string) string { return PrefixOf(project) + host + "/" + text }

// placeFields and runFields are the least numbers of fields in a name for the deployed pair, and for the run.
const placeFields, runFields = 3 + 3 + 2 + 2, 7

// Key returns the object key of the record, signed with a host's key.
func (r *Record) Key(k hostkey.Key) (string, error) {
	text := r.text()
	text += "," + k.SignName(signed(r.Project, r.Host, text)) + suffix
	parts := []string{PrefixOf(r.Project) + r.Host}
	for len(text) > longestSegment {
		parts, text = append(parts, text[:longestSegment]), text[longestSegment:]
	}
	key := strings.Join(append(parts, text), "/")
	if err := store.CheckKey(key); err != nil {
		return "", fmt.Errorf("naming the host's record: %w", err)
	}
	return key, nil
}

func (p *Place) fields(channel bool) []string {
	if p == nil {
		p = &Place{}
	}
	if channel {
		return []string{p.Channel, p.Version, p.Digest}
	}
	return []string{p.Version, p.Digest}
}

// join encodes fields as a segment. Bytes other than letters, digits, dots, dashes and underscores become ! and two
// hexadecimal digits, so that every store keeps the name unchanged.
func join(fields ...string) string {
	var b strings.Builder
	for i, field := range fields {
		if i > 0 {
			b.WriteByte(',')
		}
		for j := range len(field) {
			if c := field[j]; plain(c) {
				b.WriteByte(c)
			} else {
				fmt.Fprintf(&b, "!%02x", c)
			}
		}
	}
	return b.String()
}

func plain(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '-' || c == '_'
}

// split decodes a segment that join encoded.
func split(segment string) ([]string, error) {
	fields := strings.Split(segment, ",")
	for i, field := range fields {
		parts := strings.Split(field, "!")
		for j, part := range parts[1:] {
			if len(part) < 2 {
				return nil, errors.New("it ends in the middle of a character")
			}
			c, err := strconv.ParseUint(part[:2], 16, 8)
			if err != nil {
				return nil, err
			}
			parts[j+1] = string([]byte{byte(c)}) + part[2:]
		}
		fields[i] = strings.Join(parts, "")
	}
	return fields, nil
}

// parse parses the key of a record's object into the record, the signed text and the signature. Every user who may
// write to the store can choose the key: it must not be trusted before the signature was verified.
func parse(key string) (r Record, text, signature string, err error) {
	none := errors.New("it is not a record of a host")
	parts := strings.Split(key, "/")
	if len(parts) < 4 {
		return r, "", "", none
	}
	r.Project, r.Host = parts[1], parts[2]
	if err := cmp.Or(artifact.CheckProject(r.Project), artifact.CheckHost(r.Host)); err != nil {
		return r, "", "", err
	}
	text, ok := strings.CutSuffix(strings.Join(parts[3:], ""), suffix)
	comma := strings.LastIndexByte(text, ',')
	if !ok || comma < 0 {
		return r, "", "", none
	}
	text, signature = text[:comma], text[comma+1:]
	fields, err := split(text)
	if err != nil || len(fields) < placeFields+runFields {
		return r, "", "", none
	}
	if err := cmp.Or(r.parsePlaces(fields[:placeFields]), r.parseRun(fields[placeFields:])); err != nil {
		return r, "", "", err
	}
	return r, signed(r.Project, r.Host, text), signature, nil
}

func (r *Record) parseRun(fields []string) error {
	r.Run, r.Outcome, r.Agent = fields[0], fields[2], fields[5]
	r.Flags.parse(fields[4])
	var errs [3]error
	r.Sequence, errs[0] = strconv.ParseInt(fields[1], 10, 64)
	r.Exit, errs[1] = strconv.Atoi(fields[3])
	r.Form, errs[2] = strconv.Atoi(fields[6])
	if at := r.Started(); at.IsZero() || at.Format(RunTime) != r.Run {
		return errors.New("it does not say when its run started")
	}
	if !isShortASCII(r.Outcome) || !isShortASCII(r.Agent) {
		return errors.New("it does not name an outcome and a version of the agent")
	}
	if r.Sequence < 0 {
		return errors.New("it has a negative number")
	}
	return errors.Join(errs[:]...)
}

func (r *Record) parsePlaces(f []string) (err error) {
	read := func(channel, version, digest string) *Place {
		p := Place{channel, version, digest}
		if channel != "" && artifact.CheckChannel(channel) != nil || version != "" && artifact.CheckVersion(version) != nil ||
			digest != "" && !isShortDigest(digest) {
			err = errors.New("it does not name a release")
		}
		if p == (Place{}) {
			return nil
		}
		return &p
	}
	r.Service, r.Base = read(f[0], f[1], f[2]), read(f[3], f[4], f[5])
	r.Wanted, r.WantedBase = read("", f[6], f[7]), read("", f[8], f[9])
	if r.Wanted != nil && r.Service != nil {
		r.Wanted.Channel = r.Service.Channel
	}
	if r.WantedBase != nil && r.Base != nil {
		r.WantedBase.Channel = r.Base.Channel
	}
	return err
}

// isShortDigest reports whether a text may be what artifact.Digest.Short returns.
func isShortDigest(text string) bool {
	const length = 8
	return len(text) == length && !strings.ContainsFunc(text, func(c rune) bool {
		return (c < '0' || c > '9') && (c < 'a' || c > 'f')
	})
}

// isShortASCII reports whether a text has only printable ASCII characters, and not many. Newer agents may have other
// outcomes.
func isShortASCII(text string) bool {
	const longest = 128
	return len(text) <= longest && !strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c > '~' })
}
