package hostrecord

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/hostkey"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/store"
)

// unkeptName is the text of the failure object of a host. It has the same key after each run, so that a host that
// cannot write to its own disk needs no memory of what it wrote, and leaves one object in the store.
const unkeptName = "failed"

// unkeptKey returns the key of the failure object of a host, signed with its key.
func unkeptKey(project, host string, k hostkey.Key) string {
	return PrefixOf(project) + host + "/" + unkeptName + "," + k.SignName(signed(project, host, unkeptName)) + suffix
}

// parseUnkept parses the key of a failure object. As with parse, the result must not be trusted before the signature
// was verified.
func parseUnkept(info store.Info) (candidate, bool) {
	parts := strings.Split(info.Key, "/")
	if len(parts) != 4 {
		return candidate{}, false
	}
	sig, ok := strings.CutPrefix(parts[3], unkeptName+",")
	sig, isJSON := strings.CutSuffix(sig, suffix)
	project, host := parts[1], parts[2]
	if !ok || !isJSON || cmp.Or(artifact.CheckProject(project), artifact.CheckHost(host)) != nil {
		return candidate{}, false
	}
	seen := info.Modified.UTC()
	r := Record{Project: project, Host: host, Run: seen.Format(RunTime), Outcome: unkeptName, Exit: 1}
	return candidate{Listed{Record: r, Key: info.Key, Seen: seen}, signed(project, host, unkeptName), sig, true}, true
}

// withFailure returns a record with the outcome of the newest failure object that the store received after it. If found
// is false, there is no record, and the failure object is the record.
func withFailure(r Listed, found bool, failures []candidate) Listed {
	for _, f := range failures {
		switch {
		case !found:
			r, found = f.Listed, true
			r.Unbegun = true
		case f.Seen.After(r.Seen):
			r.Outcome, r.Exit, r.Key, r.Seen, r.Unbegun = f.Outcome, f.Exit, f.Key, f.Seen, true
		}
	}
	return r
}

// partition returns the failure objects of a host, and its other records in their order.
func partition(all []candidate) (failures, others []candidate) {
	for _, c := range all {
		if c.unkept {
			failures = append(failures, c)
		} else {
			others = append(others, c)
		}
	}
	return failures, others
}

// ErrUnkept is the error of a record that was not written, since this host cannot save which records the store has of
// it.
var ErrUnkept = errors.New("the host's record was not written, since its key cannot be saved on this host")

// WriteFailure writes the failure object of a host that cannot write to its own disk. Until the host writes a record
// again, readers show the host as failed, with the error and hint of d.
func (w Writer) WriteFailure(ctx context.Context, project, host string, d Detail) error {
	key := unkeptKey(project, host, w.Key)
	r := Record{Project: project, Host: host, Run: w.Now.UTC().Format(RunTime), Outcome: unkeptName, Exit: 1}
	data, err := w.object(key, r, d)
	if err != nil {
		return err
	}
	if _, err := w.Store.Put(ctx, key, bytes.NewReader(data), int64(len(data)), store.Condition{}); err != nil {
		return fmt.Errorf("writing that the host failed: %w", hintRights(err, r))
	}
	// A full filesystem allows the change of a time. On one that is read-only, the next record follows after
	// reports.heartbeat.
	_ = os.Chtimes(w.File, overruled, overruled)
	return nil
}

// overruled is the time of the file about records while the newest record in the store is overruled by a failure
// object, so that the next run that can write repeats its record at once.
var overruled = time.Unix(0, 0)

// isOverruled reports whether the host has written a failure object since its newest record.
func (w Writer) isOverruled() bool {
	info, err := os.Lstat(w.File)
	return err == nil && info.ModTime().Equal(overruled)
}

// Last returns the project and the host of the newest record that this host wrote to the store, and the URL of that
// store; "" if there is none.
func Last(file string) (project, host, url string) {
	last, err := readWritten(file)
	if err != nil || len(last.Records) == 0 {
		return "", "", ""
	}
	r, _, _, err := parse(last.Records[len(last.Records)-1])
	if err != nil {
		return "", "", ""
	}
	return r.Project, r.Host, last.Store
}

// signedWith returns the candidates that a key signed.
func signedWith(key hostkey.Public, all []candidate) []candidate {
	return slices.DeleteFunc(slices.Clone(all[:min(len(all), mostTried)]), func(c candidate) bool {
		return !key.SignedName(c.signed, c.signature)
	})
}
