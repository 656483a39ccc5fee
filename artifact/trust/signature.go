package trust

import (
	"fmt"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/tuf"
)

// Signature is who signed what a host knows of a project, as it was verified when it was fetched.
type Signature struct {
	Project  string             `json:"project"`
	Keys     []string           `json:"keys"` // IDs of the keys that signed
	Version  int64              `json:"version"`
	Expires  time.Time          `json:"expires"`
	Channels map[string]Pointer `json:"channels"`
}

// SignatureOf reads it from what a host keeps in dir, without asking the store. It is nil where
// nothing was seen of the project yet.
func SignatureOf(dir, project string) (*Signature, error) {
	data, err := seen{dir: dir}.load(roleFile(project))
	if data == nil || err != nil {
		return nil, err
	}
	role, err := Decode[tuf.TargetsType](data)
	if err != nil {
		return nil, fmt.Errorf("reading who signed %s: %w", project, err)
	}
	s := Signature{Project: project, Version: role.Signed.Version, Expires: role.Signed.Expires, Keys: []string{}}
	for _, signature := range role.Signatures {
		s.Keys = append(s.Keys, signature.KeyID)
	}
	s.Channels, err = Channels(role)
	return &s, err
}
