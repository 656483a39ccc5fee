package trust

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math/bits"
	"path"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/structsort"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
)

// A project's metadata is written in two forms, both signed by the project's keys, with one version number:
//
//	NAME        the whole list: every version in one file, for older agents and publishers.
//	            It is capped to stay below their size limit; the channels' versions come first.
//	NAME~head   the channels, the targets of the versions that they name, and the digests of the pages.
//	            Each version is on the page that its hash selects. A page is stored under its own
//	            digest, so the head's signature, version and expiry cover its pages.
//
// A reader uses the head unless the snapshot names a whole list of a higher version, which an older publisher wrote.
// After the store was upgraded, the head is written under both names.
const (
	pagesField      = "pages"           // head: digests of the pages, base64; "" for a page without versions
	moreYankedField = "more_yanked"     // head: true if its field "yanked" is incomplete
	upgradedField   = "whole_lists"     // targets: "ended" once the store was upgraded
	upgradedValue   = "ended"           // the only value of upgradedField
	headSuffix      = "~head"           // no project name has a tilde
	pagesPrefix     = "metadata/pages/" // PROJECT/HEX.json

	// wholeCap limits the whole list well below the size that older agents read (8 MiB), since older publishers add to
	// it without a check.
	wholeCap = 6 << 20
	// headYanks is the maximum number of withdrawals in a head. If there are more, hosts read the pages.
	headYanks = 64
	// pageVersions is the average number of versions on a page while the project is not large.
	pageVersions = 20
)

// HeadRole returns the name of a project's head in the snapshot.
func HeadRole(project string) string { return project + headSuffix }

// IsHead reports whether a role name in the snapshot is that of a head, and returns its project.
func IsHead(role string) (project string, ok bool) { return strings.CutSuffix(role, headSuffix) }

// PagePrefix returns the prefix of the keys of a project's pages.
func PagePrefix(project string) string { return pagesPrefix + project + "/" }

// PageKey returns the key of a page.
func PageKey(project string, digest artifact.Digest) string {
	return PagePrefix(project) + digest.Hex() + ".json"
}

// Forms are the unsigned files of one version of a project's metadata.
type Forms struct {
	Head  *Role
	Whole *Role // nil once the store was upgraded: the head is written in its place
	Pages map[artifact.Digest][]byte
}

// page is a part of a project's versions.
type page struct {
	Targets map[string]*tuf.TargetFiles `json:"targets"`
	Yanked  map[string]Yank             `json:"yanked,omitempty"`
}

// Split makes the files of a project's metadata from the complete role. whole reports whether the store still has the
// list of all versions in one file.
func Split(project string, role *Role, whole bool) (Forms, error) {
	yanks, err := Yanks(role)
	if err != nil {
		return Forms{}, malformed(project, err)
	}
	named, err := channelTargets(role)
	if err != nil {
		return Forms{}, malformed(project, err)
	}
	digests, pages, err := paginate(project, role, yanks)
	if err != nil {
		return Forms{}, err
	}
	forms := Forms{Head: clone(role), Pages: pages}
	forms.Head.Signed.Targets = named
	if err := setField(forms.Head, pagesField, digests); err != nil {
		return Forms{}, err
	}
	if len(yanks) > headYanks {
		few := maps.Clone(yanks)
		maps.DeleteFunc(few, func(version string, _ Yank) bool { return !names(project, named, version) })
		forms.Head.Signed.UnrecognizedFields[moreYankedField] = true
		if err := SetYanks(forms.Head, few); err != nil {
			return Forms{}, err
		}
	}
	if whole {
		forms.Whole, err = capped(role, named)
	}
	return forms, err
}

// clone copies the parts of a role that are changed here, without signatures and pages.
func clone(role *Role) *Role {
	c := *role
	c.Signatures = []tuf.Signature{}
	c.Signed.Targets = maps.Clone(role.Signed.Targets)
	if c.Signed.Targets == nil {
		c.Signed.Targets = map[string]*tuf.TargetFiles{}
	}
	c.Signed.UnrecognizedFields = maps.Clone(role.Signed.UnrecognizedFields)
	if c.Signed.UnrecognizedFields == nil {
		c.Signed.UnrecognizedFields = map[string]any{}
	}
	delete(c.Signed.UnrecognizedFields, pagesField)
	delete(c.Signed.UnrecognizedFields, moreYankedField)
	return &c
}

// channelTargets returns the targets of the versions that channels name.
func channelTargets(role *Role) (map[string]*tuf.TargetFiles, error) {
	channels, err := Channels(role)
	if err != nil {
		return nil, err
	}
	named := map[string]bool{}
	for _, pointer := range channels {
		named[pointer.Version] = true
	}
	targets := map[string]*tuf.TargetFiles{}
	for target, file := range role.Signed.Targets {
		if named[versionOf(target)] {
			targets[target] = file
		}
	}
	return targets, nil
}

// names reports whether targets contains a version.
func names(project string, targets map[string]*tuf.TargetFiles, version string) bool {
	return slices.ContainsFunc(artifact.Formats(), func(f artifact.Format) bool {
		return targets[TargetPath(project, version, f)] != nil
	})
}

// versionOf returns the version that a target belongs to: an artifact, or a file signed beside one. For any other
// target it returns the base name.
func versionOf(target string) string {
	name := path.Base(target)
	for _, kind := range []Kind{KindBlocks, KindIndex, KindSPDX, KindProvenance} {
		if stem, ok := strings.CutSuffix(name, "."+string(kind)); ok {
			name = stem
			break
		}
	}
	if version, _, err := splitTarget(name); err == nil {
		return version
	}
	return name
}

// paginate distributes the versions over the pages.
func paginate(project string, role *Role, yanks map[string]Yank) ([]string, map[artifact.Digest][]byte, error) {
	versions := map[string]bool{}
	for target := range role.Signed.Targets {
		versions[versionOf(target)] = true
	}
	list := make([]page, pageCount(len(versions)))
	for i := range list {
		list[i] = page{Targets: map[string]*tuf.TargetFiles{}, Yanked: map[string]Yank{}}
	}
	for target, file := range role.Signed.Targets {
		list[pageOf(versionOf(target), len(list))].Targets[target] = file
	}
	for version, yank := range yanks {
		list[pageOf(version, len(list))].Yanked[version] = yank
	}
	digests, pages := make([]string, len(list)), map[artifact.Digest][]byte{}
	for i, p := range list {
		if len(p.Targets)+len(p.Yanked) == 0 {
			continue
		}
		data, err := json.Marshal(p)
		if err != nil {
			return nil, nil, fmt.Errorf("writing a page of %s: %w", project, err)
		}
		digest := digestOf(data)
		digests[i] = encodeDigest(digest)
		pages[digest] = data
	}
	return digests, pages, nil
}

// encodeDigest encodes the digest of a page for the head.
func encodeDigest(digest artifact.Digest) string {
	sum, _ := hex.DecodeString(digest.Hex()) // a Digest is hexadecimal
	return base64.RawURLEncoding.EncodeToString(sum)
}

// pageCount returns the number of pages for so many versions: a power of two, so that both the head, which names each
// page, and the pages are small.
func pageCount(versions int) int {
	few := 1
	for few*pageVersions < versions {
		few *= 2
	}
	root := 1 // the largest power of two up to the square root of 16 times the versions
	if n := bits.Len(uint(16*versions)) - 1; n > 0 {
		root = 1 << (n / 2)
	}
	return max(1, min(few, root))
}

// pageOf returns the page of a version.
func pageOf(version string, pages int) int {
	sum := sha256.Sum256([]byte(version))
	return int(binary.BigEndian.Uint32(sum[:]) % uint32(pages))
}

// capped returns the list of all versions for older readers: the channels' versions and all withdrawals, then the
// newest of the other versions that fit.
func capped(role *Role, named map[string]*tuf.TargetFiles) (*Role, error) {
	whole := clone(role)
	whole.Signed.Targets = maps.Clone(named)
	data, err := whole.ToBytes()
	if err != nil {
		return nil, err
	}
	beside := map[string][]string{} // version -> targets
	for target := range role.Signed.Targets {
		beside[versionOf(target)] = append(beside[versionOf(target)], target)
	}
	room := wholeCap - len(data)
	versions := slices.Collect(maps.Keys(beside))
	structsort.Func(versions, func(a, b string) int { return artifact.CompareVersions(b, a) })
	for _, version := range versions {
		for _, target := range beside[version] {
			data, err := json.Marshal(role.Signed.Targets[target])
			if err != nil {
				return nil, err
			}
			room -= len(data) + len(target) + len(`"":,`)
		}
		if room < 0 {
			break
		}
		for _, target := range beside[version] {
			whole.Signed.Targets[target] = role.Signed.Targets[target]
		}
	}
	return whole, nil
}

// pageDigests returns the digests of a role's pages; nil for a role without pages.
func pageDigests(role *Role) ([]artifact.Digest, error) {
	var texts []string
	if err := readField(role, pagesField, &texts); err != nil || len(texts) == 0 {
		return nil, err
	}
	digests := make([]artifact.Digest, len(texts))
	for i, text := range texts {
		if text == "" {
			continue
		}
		sum, err := base64.RawURLEncoding.DecodeString(text)
		if err != nil || len(sum) != sha256.Size {
			return nil, fmt.Errorf("its page %d has no digest", i)
		}
		digests[i] = artifact.NewDigest([32]byte(sum))
	}
	return digests, nil
}

// Pages returns the digests of the pages that a project's head names, without empty ones.
func Pages(head *Role) ([]artifact.Digest, error) {
	digests, err := pageDigests(head)
	return slices.DeleteFunc(digests, func(d artifact.Digest) bool { return d == "" }), err
}

// parsePage parses page i of a project, whose digest the caller has checked.
func parsePage(data []byte, i, pages int) (*page, error) {
	var p page
	if err := DecodeInto(data, &p); err != nil {
		return nil, err
	}
	for target, file := range p.Targets {
		if file == nil || pageOf(versionOf(target), pages) != i {
			return nil, fmt.Errorf("%s is not on the page that it belongs to", Printable(target))
		}
	}
	for version := range p.Yanked {
		if pageOf(version, pages) != i {
			return nil, fmt.Errorf("the withdrawal of %s is not on the page that it belongs to", Printable(version))
		}
	}
	return &p, nil
}

// Join combines a project's head with all of its pages, which read returns by digest. Entries of the head take
// precedence over those of the pages. A role without pages is complete already.
func Join(project string, head *Role, read func(artifact.Digest) ([]byte, error)) (*Role, error) {
	digests, err := pageDigests(head)
	if err != nil {
		return nil, malformed(project, err)
	}
	all := clone(head)
	yanks, err := Yanks(head)
	if err != nil {
		return nil, malformed(project, err)
	}
	for i, digest := range digests {
		if digest == "" {
			continue
		}
		data, err := read(digest)
		if err != nil {
			return nil, err
		}
		p, err := parsePage(data, i, len(digests))
		if err != nil {
			return nil, malformed(PageKey(project, digest), err)
		}
		for target, file := range p.Targets {
			if all.Signed.Targets[target] == nil {
				all.Signed.Targets[target] = file
			}
		}
		for version, yank := range p.Yanked {
			if _, ok := yanks[version]; !ok {
				yanks[version] = yank
			}
		}
	}
	if len(yanks) == 0 {
		return all, nil
	}
	return all, SetYanks(all, yanks)
}

// NewestForm is the newest form of a project's metadata that this program reads: 1 is the list of all versions in one
// file, 2 is a head with pages.
const NewestForm = 2

// Upgraded reports whether targets declares that the store no longer has lists of all versions in one file.
func Upgraded(targets *Role) bool {
	if targets == nil {
		return false
	}
	value, _ := targets.Signed.UnrecognizedFields[upgradedField].(string)
	return value == upgradedValue
}

// SetUpgraded declares this in targets before it is signed.
func SetUpgraded(targets *Role) {
	if targets.Signed.UnrecognizedFields == nil {
		targets.Signed.UnrecognizedFields = map[string]any{}
	}
	targets.Signed.UnrecognizedFields[upgradedField] = upgradedValue
}
