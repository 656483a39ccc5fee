// Package outage recognizes temporary failures of the network and of servers in the output of programs.
package outage

import (
	"context"
	"errors"
	"net"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Error is a temporary failure of the network, a name server or another server, such as a mirror that refuses
// connections or a name that cannot be resolved at the moment. Its text is that of Err.
type Error struct{ Err error }

func (o *Error) Error() string { return o.Err.Error() }

// Unwrap returns the error of the program.
func (o *Error) Unwrap() error { return o.Err }

// Passing marks the error as temporary; see [Passing].
func (o *Error) Passing() bool { return true }

// Hint suggests what to do about the failure.
func (o *Error) Hint() string {
	if hint := diag.HintOf(o.Err); hint != "" {
		return hint
	}
	return diag.Store.Coded(
		"check that the host reaches that server: network, name resolution and proxy; the next run tries again")
}

// Passing reports whether an error, or one that it wraps, is a temporary failure of the network.
func Passing(err error) bool {
	var passing interface{ Passing() bool }
	return errors.As(err, &passing) && passing.Passing()
}

// Recognize wraps the error of a program in an *Error if the output says that it did not reach a server.
func Recognize(ctx context.Context, output string, err error) error {
	if err == nil || Passing(err) || !saysOutage(output, func(name string) bool { return noSuchName(ctx, name) }) {
		return err
	}
	return &Error{err}
}

// saysOutage reports whether the output of package managers, git, docker and other programs says that a server was not
// reached. Many print the same message for a name server that does not answer and for a name that does not exist; then
// missing reports whether the name does not exist.
func saysOutage(output string, missing func(name string) bool) bool {
	return outageWords().MatchString(output) ||
		slices.ContainsFunc(unresolved().FindAllStringSubmatch(output, -1), func(m []string) bool {
			return !missing(m[1] + m[2] + m[3])
		})
}

// outageWords matches messages of those programs about servers that they did not reach, or that cannot answer now.
var outageWords = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)temporary failure (?:in name resolution|resolving)|\bEAI_AGAIN\b|server misbehaving` +
		`|connection (?:refused|reset|timed out|broken|aborted)|remote end closed connection|error reading from server\b` +
		`|mirror sync in progress|transfer closed with |\b(?:ECONNREFUSED|ECONNRESET|ETIMEDOUT|ESOCKETTIMEDOUT|` +
		`ENETUNREACH|EHOSTUNREACH)\b` +
		`|network (?:is )?unreachable|no route to host|network error \(check|temporary error \(try again` +
		`|(?:couldn't|could not|unable to|failed to) connect to (?:server|\S+ port|\S+:)|connection failed` +
		`|(?:operation|resolving|read|connect|i/o|handshake|request) time(?:d )?out|timeout (?:was reached|exceeded|` +
		`awaiting)|operation too slow|client\.timeout exceeded` +
		`|\bcurl(?: error \(|#)(?:5|7|18|28|52|55|56|92)\b` +
		`|\b(?:429 too many requests|toomanyrequests|50[024] +(?:internal server error|bad gateway|gateway time-?out)|503 ` +
		`+service (?:temporarily )?unavailable)|returned error: (?:429|50[0234])\b`)
})

// unresolved matches names that a program could not resolve.
var unresolved = sync.OnceValue(func() *regexp.Regexp {
	const name = `[a-zA-Z0-9](?:[\w.-]*\w)?`
	return regexp.MustCompile(`(?i)resolve (?:host(?: ?name)?|proxy)?(?: for [a-z]+://|:)? ?['"]?(` + name + `)` +
		`|lookup (` + name + `)[^\n]*no such host|\bENOTFOUND (` + name + `)`)
})

// noSuchName reports whether the name servers answer that a name does not exist.
func noSuchName(ctx context.Context, name string) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	_, err := net.DefaultResolver.LookupHost(ctx, name)
	var dns *net.DNSError
	return errors.As(err, &dns) && dns.IsNotFound
}
