// Package artifact defines the names of deployable things: projects, versions, channels, digests and releases.
//
// An artifact is a signed archive of one project. A channel, such as myapp/testing, is a signed name that points to one
// version. Promoting a release changes the digest that a channel points to, and never the bytes. Packages below this
// one publish artifacts to a store (publish), verify them (trust) and unpack them (unpack).
package artifact

import (
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Base is the project that every host deploys beside its service.
const Base = "base"

// CheckProject returns an error if a project may not have this name. Names become parts of paths and keys, so they
// consist of letters, digits, dots, dashes and underscores, and start with a letter or digit.
func CheckProject(name string) error { return check("project", name, 63, "._-") }

// CheckService returns an error if no host can have a project as its service. Each host deploys base beside its
// service, and one project has one set of links.
func CheckService(name string) error {
	if name != Base {
		return CheckProject(name)
	}
	return diag.Identity.Hint(
		fmt.Errorf("no host has %s as its service: each host deploys it beside its service", Base),
		"give the host another service: rename it, or corpus-agent deploy SERVICE INSTANCE; the service of a host that "+
			"needs only base is a project with nothing but an empty top file")
}

// CheckVersion returns an error if a version may not have this name.
func CheckVersion(version string) error { return check("version", version, 128, "._+~-") }

// CheckChannel returns an error if a channel may not have this name.
func CheckChannel(name string) error { return check("channel", name, 63, "._-") }

// CheckPart returns a check for a part of a host's identity, such as its instance. Its errors contain the text what.
func CheckPart(what string) func(string) error {
	return func(name string) error { return check(what, name, 63, "._-") }
}

// CheckHost returns an error if a host may not have this name, with or without its domain.
func CheckHost(name string) error { return check("host", name, 253, "._-") }

// CheckUnit returns an error if a systemd unit may not have this name. It becomes an argument of systemctl and part of
// a path.
func CheckUnit(name string) error { return check("unit", name, 255, `:_.\@-`) }

// CheckUser returns an error if an account or a group may not have this name. Names of domains, such as DOM\user and
// user@example.com, are allowed. The name becomes an argument of useradd and a field of /etc/passwd.
func CheckUser(name string) error {
	if after, ok := strings.CutPrefix(name, "_"); ok { // service accounts of some systems
		name = "a" + after
	}
	return check("user", name, 128, `._\$+@-`)
}

// check uses no regular expression, since that would be compiled at every start.
func check(what, name string, longest int, punctuation string) error {
	good := name != "" && len(name) <= longest && alphanumeric(name[0])
	for i := range len(name) {
		good = good && (alphanumeric(name[i]) || strings.IndexByte(punctuation, name[i]) >= 0)
	}
	if good {
		return nil
	}
	return diag.Usage.Hint(fmt.Errorf("%q is not %s name", name, an(what)),
		"use letters, digits, dots and dashes, start with a letter or a digit, and stay within %d characters", longest)
}

func alphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || isDigit(c)
}

// Digest is the SHA-256 of an artifact, written sha256:HEX.
type Digest string

const digestPrefix = "sha256:"

// NewDigest returns a SHA-256 sum as a Digest.
func NewDigest(sum [32]byte) Digest { return Digest(digestPrefix + hex.EncodeToString(sum[:])) }

// ParseDigest parses a digest. SHA-256 is the only supported kind.
func ParseDigest(s string) (Digest, error) {
	h, ok := strings.CutPrefix(s, digestPrefix)
	if b, err := hex.DecodeString(h); !ok || err != nil || len(b) != 32 {
		return "", diag.Usage.Hint(fmt.Errorf("%q is not a digest", s), "a digest reads sha256: and 64 hexadecimal digits")
	}
	return Digest(strings.ToLower(s)), nil
}

// PartOfDigest returns a digest of which only the start is known, as returned by Short. It is not the digest of any
// artifact: a release with it differs from every other release, and cannot be fetched.
func PartOfDigest(short string) Digest { return Digest(digestPrefix + short) }

// Part reports whether the digest was made by PartOfDigest.
func (d Digest) Part() bool { return d != "" && len(d.Hex()) < 64 }

// Hex returns the digest without the prefix sha256:.
func (d Digest) Hex() string { return strings.TrimPrefix(string(d), digestPrefix) }

// Short returns the start of the digest, enough for people to tell two releases apart.
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

// ParseRef parses project/channel.
func ParseRef(s string) (Ref, error) {
	project, channel, ok := strings.Cut(s, "/")
	if !ok {
		return Ref{}, diag.Usage.Hint(fmt.Errorf("%q is not a channel", s),
			"a channel is written project/channel, such as myapp/testing")
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
	// Local is how an unsigned release reached the host, such as "push" or "editable"; it is empty for a release
	// signed by the store's keys. See trust.Local.
	Local string `json:"local,omitempty"`
}

// Dir returns the name of the release's directory on a host. It contains the digest, so that releases of two stores
// with one version and different bytes have different directories.
func (r Release) Dir() string { return r.Version + "-" + r.Digest.Short() }

// Is reports whether two releases have the same project and the same bytes. Releases of two projects may have the same
// bytes.
func (r Release) Is(other Release) bool {
	return r.Project == other.Project && r.Digest == other.Digest
}

// String names the release, and marks an unsigned one.
func (r Release) String() string {
	if r.Local != "" {
		return r.Project + " " + r.Version + " (unsigned)"
	}
	return r.Project + " " + r.Version
}

// Format is how an artifact is packed, written as its file name extension.
type Format string

// The formats that an agent unpacks. This project's builds are always TarZst.
const (
	TarZst Format = "tar.zst"
	TarGz  Format = "tar.gz"
	TarXz  Format = "tar.xz"
	Tar    Format = "tar"
	Zip    Format = "zip"
)

// Formats returns the formats that an agent unpacks.
func Formats() []Format { return []Format{TarZst, TarGz, TarXz, Tar, Zip} }

// FormatOf returns the format for a file's name; .tgz and .txz are recognized too.
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
	return "", diag.Tree.Hint(fmt.Errorf("%s: not an archive an agent unpacks", name),
		"pack it with `corpus build`, or as .tar.zst, .tar.gz, .tar.xz, .tar or .zip")
}

// an puts an article before a noun.
func an(noun string) string {
	if strings.IndexByte("aeio", noun[0]) >= 0 { // a unit, a user
		return "an " + noun
	}
	return "a " + noun
}
