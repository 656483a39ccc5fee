// Package artifact names what is deployed: projects, versions, channels, digests and releases.
//
// An artifact is a signed archive of one project. A channel, written myapp/testing, is a signed,
// moving name for one version of it; promoting points a channel at a digest and never touches
// bytes. The rooms below carry an artifact from where it is published to where it is unpacked:
// publish writes a store, trust decides what may be believed, unpack makes a directory of it.
package artifact

import (
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Base is the project that every host deploys beside its service.
const Base = "base"

// CheckProject reports whether a project may have this name. Names end up in paths and keys, so
// they hold letters, digits, dots, dashes and underscores, and start with a letter or digit.
func CheckProject(name string) error { return check("project", name, 63, "._-") }

// CheckVersion reports whether a version may be written so.
func CheckVersion(version string) error { return check("version", version, 128, "._+~-") }

// CheckChannel reports whether a channel may have this name.
func CheckChannel(name string) error { return check("channel", name, 63, "._-") }

// CheckPart makes the check of a part of a host's identity, such as its instance, which errors name.
func CheckPart(what string) func(string) error {
	return func(name string) error { return check(what, name, 63, "._-") }
}

// CheckHost reports whether a host may have this name, with its domain or without.
func CheckHost(name string) error { return check("host", name, 253, "._-") }

// CheckUnit reports whether a systemd unit may have this name. It becomes an argument of systemctl, and a part of a path.
func CheckUnit(name string) error { return check("unit", name, 255, `:_.\@-`) }

// CheckUser reports whether an account or a group may have this name: those of domains, such as DOM\user and
// user@example.com, are among them. It becomes an argument of useradd, and a field of /etc/passwd.
func CheckUser(name string) error {
	if after, ok := strings.CutPrefix(name, "_"); ok { // accounts of services on some systems
		name = "a" + after
	}
	return check("user", name, 128, `._\$+@-`)
}

// check is written by hand: a regular expression would be compiled at every start.
func check(what, name string, longest int, punctuation string) error {
	good := name != "" && len(name) <= longest && alphanumeric(name[0])
	for i := range len(name) {
		good = good && (alphanumeric(name[i]) || strings.IndexByte(punctuation, name[i]) >= 0)
	}
	if good {
		return nil
	}
	return diag.WithHint(fmt.Errorf("%q is not %s name", name, an(what)),
		"use letters, digits, dots and dashes, start with a letter or a digit, and stay within %d", longest)
}

func alphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || isDigit(c)
}

// Digest is the SHA-256 of an artifact, written sha256:HEX.
type Digest string

const digestPrefix = "sha256:"

// NewDigest writes the sum as a Digest.
func NewDigest(sum [32]byte) Digest { return Digest(digestPrefix + hex.EncodeToString(sum[:])) }

// ParseDigest checks that s is a digest of the one kind there is.
func ParseDigest(s string) (Digest, error) {
	h, ok := strings.CutPrefix(s, digestPrefix)
	if b, err := hex.DecodeString(h); !ok || err != nil || len(b) != 32 {
		return "", diag.WithHint(fmt.Errorf("%q is not a digest", s), "a digest reads sha256: and 64 hexadecimal digits")
	}
	return Digest(strings.ToLower(s)), nil
}

// PartOfDigest is a digest of which the start alone is known, as Short gives it. It is no digest of any
// artifact: a release that has one compares as another one, and nothing can be fetched by it.
func PartOfDigest(short string) Digest { return Digest(digestPrefix + short) }

// Part reports whether the digest is one of PartOfDigest.
func (d Digest) Part() bool { return d != "" && len(d.Hex()) < 64 }

// Hex is the digest without its kind.
func (d Digest) Hex() string { return strings.TrimPrefix(string(d), digestPrefix) }

// Short is enough of the digest for a person to tell two releases apart.
func (d Digest) Short() string {
	h := d.Hex()
	return h[:min(len(h), 8)]
}

// Ref is a channel of a project, written project/channel.
type Ref struct {
	Project string `json:"project"`
	Channel string `json:"channel"`
}

func (r Ref) String() string { return r.Project + "/" + r.Channel }

// ParseRef reads project/channel.
func ParseRef(s string) (Ref, error) {
	project, channel, ok := strings.Cut(s, "/")
	if !ok {
		return Ref{}, diag.WithHint(fmt.Errorf("%q is not a channel", s), "a channel is written project/channel, such as myapp/testing")
	}
	if err := CheckProject(project); err != nil {
		return Ref{}, err
	}
	return Ref{Project: project, Channel: channel}, CheckChannel(channel)
}

// Release is one version of a project, as the project's key signed it.
type Release struct {
	Project string `json:"project"`
	Version string `json:"version"`
	Digest  Digest `json:"digest"`
	Length  int64  `json:"length"` // bytes of the artifact
	Format  Format `json:"format"`
	// Local says how a release came that no key signed, such as "push" or "editable"; it is empty
	// for one that the store's keys vouch for. See trust.Local.
	Local string `json:"local,omitempty"`
}

// Dir is the name of the release's directory on a host. The digest is part of it, so that two
// stores that give one version to different bytes cannot meet in one directory.
func (r Release) Dir() string { return r.Version + "-" + r.Digest.Short() }

// String names the release; an unsigned one says so wherever it is shown.
func (r Release) String() string {
	if r.Local != "" {
		return r.Project + " " + r.Version + " (unsigned)"
	}
	return r.Project + " " + r.Version
}

// Format is how an artifact is packed, written as its file name extension.
type Format string

// The formats an agent unpacks. What this project builds is always TarZst.
const (
	TarZst Format = "tar.zst"
	TarGz  Format = "tar.gz"
	TarXz  Format = "tar.xz"
	Tar    Format = "tar"
	Zip    Format = "zip"
)

// Formats are those an agent unpacks.
func Formats() []Format { return []Format{TarZst, TarGz, TarXz, Tar, Zip} }

// FormatOf tells the format by a file's name; .tgz and .txz are known too.
func FormatOf(name string) (Format, error) {
	for _, f := range Formats() {
		if strings.HasSuffix(name, "."+string(f)) {
			return f, nil
		}
	}
	switch {
	case strings.HasSuffix(name, ".tgz"):
		return TarGz, nil
	case strings.HasSuffix(name, ".txz"):
		return TarXz, nil
	}
	return "", diag.WithHint(fmt.Errorf("%s: not an archive an agent unpacks", name), "pack it with `corpus build`, or as .tar.zst, .tar.gz, .tar.xz, .tar or .zip")
}

// an is a noun with its article.
func an(noun string) string {
	if strings.IndexByte("aeio", noun[0]) >= 0 { // a unit, a user
		return "an " + noun
	}
	return "a " + noun
}
