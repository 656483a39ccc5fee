package cloud

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// key is one key of a mapping of the file.
type key struct {
	name     string
	doc      string
	kind     kind
	required bool
	check    func(string) error // checks a text, or each text of a list
	of       []key              // keys of the mappings in a mapping of names to mappings
	named    func(string) error // checks the names
}

type kind int

const (
	text kind = iota
	texts
	number
	section // a mapping of names to mappings
)

// keys returns the keys of the file, in the order in which they are written.
func keys() []key {
	return []key{
		{name: "form", kind: number, required: true, doc: "the version of the file's format, 1"},
		{name: "domain", check: CheckDomain, doc: "the domain in which each guest has a name"},
		{name: "range4", check: CheckRange4, doc: "the IPv4 network of all nodes' ranges"},
		{name: "range6", check: CheckRange6, doc: "the IPv6 network of all nodes' ranges"},
		{name: "images", kind: section, of: imageKeys(), named: CheckName, doc: "what guests are made from"},
		{name: "nodes", kind: section, of: nodeKeys(), named: CheckName, doc: "the hosts that run guests"},
		{name: "guests", kind: section, of: guestKeys(), named: CheckName, doc: "the hosts that nodes run"},
		{name: "classes", kind: section, of: classKeys(), named: CheckName, doc: "guests that run as they are needed"},
		{name: "deleted", kind: section, of: deletedKeys(), named: CheckID, doc: "guests whose disks are removed"},
		{name: "users", kind: section, of: userKeys(), named: CheckUser, doc: "who may log in to hosts of projects"},
		{name: "projects", kind: section, of: accessKeys(), named: CheckAccess, doc: "the users of the hosts of projects"},
	}
}

func imageKeys() []key {
	return []key{
		{name: "project", required: true, check: checkService, doc: "the project of the image"},
		{name: "version", required: true, check: artifact.CheckVersion, doc: "its version"},
		{name: "digest", required: true, check: checkDigest, doc: "sha256:HEX of the artifact"},
	}
}

func nodeKeys() []key {
	return []key{
		{name: "mode", required: true, check: oneOf(Modes()), doc: "the environment of its guests: dev, staging or prod"},
		{name: "region", required: true, check: checkRegion, doc: "the region of its hostname, such as eu1"},
		{name: "address", check: checkAddress, doc: "the address at which other hosts reach it"},
		{name: "range4", check: CheckRange4, doc: "the IPv4 network of its guests"},
		{name: "range6", check: CheckRange6, doc: "the IPv6 network of its guests"},
		{name: "driver", required: true, check: oneOf(Drivers()), doc: "what runs its guests"},
		{name: "slots", kind: number, required: true, doc: "the most guests that it runs"},
		{name: "closed", check: oneOf([]string{Yes}), doc: "yes for a node that gets no more guests"},
	}
}

func guestKeys() []key {
	return []key{
		{name: "id", check: CheckID, doc: "its machine ID"},
		{name: "node", required: true, check: CheckName, doc: "the node that runs it"},
		{name: "project", required: true, check: checkService, doc: "its service"},
		{name: "env", required: true, check: oneOf(Modes()), doc: "its environment: dev, staging or prod"},
		{name: "image", required: true, check: CheckName, doc: "the image it is made from"},
		{name: "address4", check: checkAddress, doc: "its IPv4 address"},
		{name: "address6", check: checkAddress, doc: "its IPv6 address"},
		{name: "ssh_port", kind: number, doc: "the port of the node for SSH"},
		{name: "names", kind: texts, check: CheckDomain, doc: "names for which the proxy leads to it"},
		{name: "size", required: true, check: CheckSize, doc: "the size of its disk, such as 5GiB"},
		{name: "ssh_keys", kind: texts, check: CheckSSHKey, doc: "public keys that may log in as root"},
		{name: "contact", check: CheckContact, doc: "the mail address that is notified when it is ready"},
		{name: "mounts", kind: texts, check: CheckMount, doc: "directories of its node that it sees, in dev"},
		{name: "backup_to", check: CheckRepository, doc: "the repository of restic that its backups go to"},
		{name: "backup_paths", kind: texts, check: CheckPath, doc: "the paths that its backups have"},
		{name: "backup_keep", kind: texts, check: CheckKeep, doc: "how many backups are kept, such as daily=7"},
		{name: "stateless", check: oneOf([]string{Yes}), doc: "yes for a guest that has no data on its disk"},
		{name: "disk", check: CheckID, doc: "the ID of its disk after it has moved"},
		{name: "from", check: CheckName, doc: "the node that it leaves"},
		{name: "copy", check: oneOf([]string{Yes}), doc: "yes for a disk that is made from an archive"},
		{name: "moved", check: checkTime, doc: "when it left the node before"},
		{name: "old", kind: texts, check: checkOld, doc: "disks that other nodes keep of it, as NODE.DISK"},
	}
}

func deletedKeys() []key {
	return []key{
		{name: "guest", required: true, check: CheckName, doc: "the name that it had"},
		{name: "node", required: true, check: CheckName, doc: "the node that has its disk"},
		{name: "ssh_port", kind: number, doc: "the port that it had"},
		{name: "address4", check: checkAddress, doc: "the IPv4 address that it had"},
		{name: "address6", check: checkAddress, doc: "the IPv6 address that it had"},
	}
}

// A name is part of a hostname, of a path and of the name of a unit.
var namePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z][a-z0-9]{0,30}$`) })

// CheckName returns an error if an image, a node or a guest may not have this name.
func CheckName(name string) error {
	return matches(namePattern(), name, "write at most 31 lower-case letters and digits, the first a letter, such as web1")
}

var servicePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z][a-z0-9-]{0,30}$`) })

func checkService(name string) error {
	return matches(servicePattern(), name,
		"write at most 31 lower-case letters, digits and hyphens, the first a letter, such as my-app")
}

var regionPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z][a-z0-9]{0,14}[0-9]$`) })

func checkRegion(name string) error {
	return matches(regionPattern(), name, "write lower-case letters and digits, the last a digit, such as eu1")
}

// CheckID returns an error if the text is not the ID of a guest. A node checks tens of them several times, so no
// expression is compiled.
func CheckID(id string) error {
	return matched(len(id) == 32 && strings.Trim(id, "0123456789abcdef") == "", id, "corpus chooses IDs: omit it")
}

// checkOld returns an error if the text is not a disk that a node keeps of a guest.
func checkOld(text string) error {
	node, disk, _ := strings.Cut(text, ".")
	if CheckName(node) == nil && CheckID(disk) == nil {
		return nil
	}
	return diag.Cloud.Hint(fmt.Errorf("%q is not a disk of a node", clipped(text)), "corpus guest move writes NODE.DISK")
}

func checkTime(text string) error {
	if at, err := time.Parse(time.RFC3339, text); err == nil && at.UTC().Format(time.RFC3339) == text {
		return nil
	}
	return diag.Cloud.Hint(fmt.Errorf("%q is not a time", clipped(text)), "write it such as 2026-01-31T12:00:00Z")
}

var domainPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]{0,61}[a-z0-9]$`)
})

// CheckDomain returns an error if the text is not a DNS name in lower case with at least one dot.
func CheckDomain(name string) error {
	if len(name) > 253 {
		name = name[:253] + "."
	}
	return matches(domainPattern(), name, "write a name in lower case with its domain, such as www.example.com")
}

var contactPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+=-]{0,63}@[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$`)
})

// CheckContact returns an error if the text is not a mail address.
func CheckContact(text string) error {
	return matches(contactPattern(), text, "write a mail address, such as ann@example.com")
}

func matches(pattern *regexp.Regexp, text, hint string) error {
	return matched(pattern.MatchString(text), text, hint)
}

func matched(is bool, text, hint string) error {
	if is {
		return nil
	}
	return diag.Cloud.Hint(fmt.Errorf("%q is not allowed", clipped(text)), "%s", hint)
}

// clipped returns the beginning of a text, so that a long one fits into a message.
func clipped(text string) string {
	const most = 80
	if len(text) > most {
		return text[:most] + "..."
	}
	return text
}

func oneOf(choices []string) func(string) error {
	return func(text string) error {
		if slices.Contains(choices, text) {
			return nil
		}
		hint := diag.DidYouMean(text, choices)
		if hint == "" {
			hint = "one of " + strings.Join(choices, ", ")
		}
		return diag.Cloud.Hint(fmt.Errorf("%q is not allowed", clipped(text)), "%s", hint)
	}
}

func checkDigest(text string) error {
	_, err := artifact.ParseDigest(text)
	return err
}

func checkAddress(text string) error {
	addr, err := netip.ParseAddr(text)
	if err != nil || addr.Zone() != "" || addr.Is4In6() || addr.String() != text || addr.IsUnspecified() ||
		addr.IsMulticast() || addr.IsLoopback() {
		return diag.Cloud.Hint(fmt.Errorf("%q is not the address of a host", clipped(text)),
			"write it in its shortest form, such as 192.0.2.7 or 2001:db8::7")
	}
	return nil
}

// CheckRange4 returns an error if the text is not an IPv4 network with room for guests.
func CheckRange4(text string) error { return checkRange(text, 8, 29, "10.80.0.0/24", netip.Addr.Is4) }

// CheckRange6 returns an error if the text is not an IPv6 network with room for guests.
func CheckRange6(text string) error {
	return checkRange(text, 16, 120, "fd12:3456:789a::/64", netip.Addr.Is6)
}

func checkRange(text string, widest, narrowest int, example string, is func(netip.Addr) bool) error {
	prefix, err := netip.ParsePrefix(text)
	if err != nil || !is(prefix.Addr()) || prefix.Addr().Is4In6() || prefix != prefix.Masked() ||
		prefix.String() != text || prefix.Bits() < widest || prefix.Bits() > narrowest || special(prefix) {
		return diag.Cloud.Hint(fmt.Errorf("%q is not a network of guests", clipped(text)),
			"write its first address and a length of %d to %d bits, such as %s; it has no loopback, link-local, multicast or "+
				"reserved addresses", widest, narrowest, example)
	}
	return nil
}

// special reports whether a network has addresses that are not those of single hosts everywhere.
func special(prefix netip.Prefix) bool {
	for _, one := range []string{"0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/3", "::/8", "fe80::/9",
		"ff00::/8"} {
		if prefix.Overlaps(netip.MustParsePrefix(one)) {
			return true
		}
	}
	return false
}

// CheckSize returns an error if the text is not a disk size.
func CheckSize(text string) error {
	if _, ok := ParseSize(text); ok {
		return nil
	}
	return diag.Cloud.Hint(
		fmt.Errorf("%q is not a size", clipped(text)), "write a whole number with its unit, such as 5GiB")
}

// CheckSSHKey returns an error if the text is not a public key in the format of authorized_keys, without options.
func CheckSSHKey(text string) error {
	const longest = 4096
	fields := strings.Split(text, " ")
	if len(text) > longest || len(fields) < 2 || strings.ContainsFunc(text, unprintable) {
		return notAKey(errors.New("it has to be one line of a type, a key and a comment"))
	}
	data, err := base64.StdEncoding.DecodeString(fields[1])
	if err != nil {
		return notAKey(err)
	}
	if n := len(fields[0]); len(data) < 4+n || binary.BigEndian.Uint32(data) != uint32(n) ||
		string(data[4:4+n]) != fields[0] || !slices.Contains(keyTypes(), fields[0]) {
		return notAKey(fmt.Errorf("types are %s", strings.Join(keyTypes(), ", ")))
	}
	return nil
}

func notAKey(err error) error {
	return diag.Cloud.Hint(fmt.Errorf("this is not a public SSH key: %w", err),
		"give the content of a file such as id_ed25519.pub")
}

func unprintable(r rune) bool { return r < ' ' || r > '~' }

func keyTypes() []string {
	return []string{"ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521", "ssh-rsa",
		"sk-ssh-ed25519@openssh.com", "sk-ecdsa-sha2-nistp256@openssh.com"}
}
