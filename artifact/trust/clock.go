package trust

import (
	"fmt"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/tuf"
)

// checkClock refuses a clock that is before the newest thing it has seen signed: expiry would mean
// nothing with it.
func (c *Client) checkClock() error {
	created, ok := Created(c.set.Timestamp)
	if !ok || c.renew || c.now().Add(ClockTolerance).After(created) {
		return nil
	}
	return &Refused{Check: CheckClock, Of: timestampFile,
		Err: ClockError(created, c.now())}
}

// ClockError says that something was signed at a time that is in a clock's future.
func ClockError(signed, now time.Time) error {
	return fmt.Errorf("it was signed at %s, and this machine's clock says %s: %v before", signed.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339), signed.Sub(now).Round(time.Second))
}

// expired is the error of what is out of date at a time.
func expired(until, at time.Time) error {
	if at.After(until) {
		return &tuf.ExpiredError{Msg: "it was good until " + until.Format(time.RFC3339)}
	}
	return nil
}

// Created is when a timestamp was signed, where it says so.
func Created(timestamp *tuf.Metadata[tuf.TimestampType]) (time.Time, bool) {
	if timestamp == nil {
		return time.Time{}, false
	}
	text, _ := timestamp.Signed.UnrecognizedFields[createdField].(string)
	at, err := time.Parse(time.RFC3339, text)
	return at, err == nil
}

// SetCreated writes when a timestamp is signed.
func SetCreated(timestamp *tuf.Metadata[tuf.TimestampType], at time.Time) {
	if timestamp.Signed.UnrecognizedFields == nil {
		timestamp.Signed.UnrecognizedFields = map[string]any{}
	}
	timestamp.Signed.UnrecognizedFields[createdField] = at.UTC().Format(time.RFC3339)
}
