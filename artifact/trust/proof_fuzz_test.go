package trust_test

import (
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
)

// FuzzParseProof parses the content of a pointer. No content may be valid if no key may attest, and parsing it again
// must return the same proof.
func FuzzParseProof(f *testing.F) {
	at := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	digest := artifact.NewDigest([32]byte{1})
	good, err := trust.NewProof(trust.Attestation{Project: "myapp", Channel: "testing", Version: "1", Digest: digest,
		At: at, Hosts: []trust.Healthy{{Host: "a", Run: "r", At: at}}}, at.AddDate(0, 0, 90))
	if err != nil {
		f.Fatal(err)
	}
	data, err := good.ToBytes()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(
		`{"signed":{"_type":"targets","attestation":{"project":"myapp","hosts":null}},"signatures":[{"keyid":"","sig":""}]}`))
	f.Add([]byte(`{"signed":{"_type":"targets","attestation":[]},"signatures":null}`))
	claim := trust.Claim{Ref: artifact.Ref{Project: "myapp", Channel: "production"},
		Pointer:     trust.Pointer{Version: "1", Digest: digest},
		Requirement: trust.Requirement{From: "testing", Hosts: 1, Fresh: 7, Holds: 90}}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := trust.ParseProof(data)
		if err != nil {
			return
		}
		if err := p.Holds(claim, tuf.NewTargets(time.Now().UTC()), at); err == nil {
			t.Error("a proof is valid although no key may attest")
		}
		if p.Says(claim, at) == nil && (p.Project != "myapp" || p.Digest != digest || len(p.Hosts) == 0) {
			t.Errorf("%+v is valid for another release", p.Attestation)
		}
		if !p.Same(p) {
			t.Errorf("%+v differs when it is parsed again", p.Attestation)
		}
	})
}
