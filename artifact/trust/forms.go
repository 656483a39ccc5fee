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
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
)

// A project's metadata is written in two forms, both signed by the project's keys, with one version
// number:
//
//	NAME        the whole list: every version in one file. Agents and publishers of before read it.
//	            It is capped, the channels' versions first, so that it stays below what they read.
//	NAME~head   the channels, what is signed of the versions that they name, and the digests of pages.
//	            Every version is on the page that its hash names. A page is a file under its own
//	            digest, so the signature, version and expiry of the head are those of its pages.
//
// A reader takes the head unless the snapshot names a whole list of a higher version, which a
// publisher of before wrote. After the store was upgraded, the head is written under both names.
const (
	pagesField      = "pages"           // head: digests of the pages, base64; "" for a page without versions
	moreYankedField = "more_yanked"     // head: its field "yanked" is not all of it
	upgradedField   = "whole_lists"     // targets: "ended" once the store was upgraded
	upgradedValue   = "ended"           // the one value that upgradedField has
	headSuffix      = "~head"           // no project has a tilde in its name
	pagesPrefix     = "metadata/pages/" // PROJECT/HEX.json

	// wholeCap bounds the whole list well below what agents of before read (8 MiB), since a publisher
	// of before adds to it without looking.
	wholeCap = 6 << 20
	// headYanks is how many withdrawals a head lists. Where there are more, hosts look at pages.
	headYanks = 64
	// pageVersions is how many versions a page has on average while the project is not large.
	pageVersions = 20
)

// HeadRole is the role name under which the head of a project's metadata lies in the snapshot.
func HeadRole(project string) string { return project + headSuffix }

// IsHead reports whether a role name of a snapshot is that of a project's head, and of which.
func IsHead(role string) (project string, ok bool) { return strings.CutSuffix(role, headSuffix) }

// PagePrefix is where the pages of a project lie.
func PagePrefix(project string) string { return pagesPrefix + project + "/" }

// PageKey is where a page lies.
func PageKey(project string, digest artifact.Digest) string {
	return PagePrefix(project) + digest.Hex() + ".json"
}

// Forms are the files of one version of a project's metadata, unsigned.
type Forms struct {
	Head  *Role
	Whole *Role // nil where the head stands for it, since the store was upgraded
	Pages map[artifact.Digest][]byte
}

// page is a part of a project's versions.
type page struct {
	Targets map[string]*tuf.TargetFiles `json:"targets"`
	Yanked  map[string]Yank             `json:"yanked,omitempty"`
}

// Split makes the files of a project's metadata out of all that it is to say. whole says whether the
// store still has the list of all versions in one file.
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
	if err := setValue(forms.Head, pagesField, digests); err != nil {
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

// clone copies a role as far as it is changed here; it carries no signatures and no pages.
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

// channelTargets is what is signed of the versions that channels name.
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

// names reports whether a version is among targets.
func names(project string, targets map[string]*tuf.TargetFiles, version string) bool {
	return slices.ContainsFunc(artifact.Formats(), func(f artifact.Format) bool {
		return targets[TargetPath(project, version, f)] != nil
	})
}

// versionOf is the version that a target belongs to: an artifact, or what is signed beside one. A
// target that is neither stands for itself.
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

// paginate puts every version on its page.
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

// encodeDigest writes the digest of a page as a head does.
func encodeDigest(digest artifact.Digest) string {
	sum, _ := hex.DecodeString(digest.Hex()) // a Digest is hexadecimal
	return base64.RawURLEncoding.EncodeToString(sum)
}

// pageCount is over how many pages so many versions are spread: a power of two, so that the head,
// which names each page, and a page are both small.
func pageCount(versions int) int {
	few := 1
	for few*pageVersions < versions {
		few *= 2
	}
	root := 1 // the power of two up to the square root of 16 times the versions
	if n := bits.Len(uint(16*versions)) - 1; n > 0 {
		root = 1 << (n / 2)
	}
	return max(1, min(few, root))
}

// pageOf is the page of a version.
func pageOf(version string, pages int) int {
	sum := sha256.Sum256([]byte(version))
	return int(binary.BigEndian.Uint32(sum[:]) % uint32(pages))
}

// capped is the list of all versions for readers of before: the channels' versions and all
// withdrawals, and of the other versions the newest, as many as there is room for.
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
	versions := slices.SortedFunc(maps.Keys(beside), func(a, b string) int { return artifact.CompareVersions(b, a) })
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

// setValue writes a field of ours, of any kind.
func setValue(role *Role, name string, value any) error { return setField(role, name, value) }

// pageDigests reads the digests of a role's pages; nil for one without pages.
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

// Pages lists the digests of the pages that a project's head names, each once.
func Pages(head *Role) ([]artifact.Digest, error) {
	digests, err := pageDigests(head)
	return slices.DeleteFunc(digests, func(d artifact.Digest) bool { return d == "" }), err
}

// parsePage reads page i of a project's pages, whose digest was checked.
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

// Join puts a project's metadata together from its head and all of its pages; page reads one of
// them. What the head says itself counts, whatever its page says. A role without pages is complete.
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

// Upgraded reports whether targets says that the lists of all versions in one file have ended.
func Upgraded(targets *Role) bool {
	if targets == nil {
		return false
	}
	value, _ := targets.Signed.UnrecognizedFields[upgradedField].(string)
	return value == upgradedValue
}

// SetUpgraded writes into targets that the lists of all versions have ended, to be signed.
func SetUpgraded(targets *Role) {
	if targets.Signed.UnrecognizedFields == nil {
		targets.Signed.UnrecognizedFields = map[string]any{}
	}
	targets.Signed.UnrecognizedFields[upgradedField] = upgradedValue
}
