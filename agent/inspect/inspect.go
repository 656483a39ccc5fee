// Package inspect answers questions about a host and changes nothing: its status, why it runs what it runs, what its
// runs changed, whether its releases are as they were unpacked, and what states would be called with.
package inspect

import (
	"github.com/corpus-agent/corpus-agent/agent/records"
)

// Host is a host to inspect.
type Host struct {
	records.Records
}
