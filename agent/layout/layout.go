// Package layout defines the paths of the agent's files.
//
// All paths are below a root, "/" on a host or the directory of --root, and every link is relative, so that a tree
// resolves at any mount point:
//
//	/srv/projects/NAME/releases/   immutable, verified
//	/srv/projects/NAME/next        always there; equals current between runs
//	/srv/projects/NAME/current     what runs
//	/srv/projects/NAME/previous    what ran before
//	/srv/projects/NAME/project     -> current
//	/srv/projects/NAME/data/       persistent; deploys never touch it
//	/srv/projects/NAME/pillar/     this host's own pillar
//	/srv/projects/NAME/archives/   failed releases, apart from good ones
//	/srv/base, /srv/service        -> projects/...
//	/var/lib/corpus/               trust, ledger, reports, journal
//	/etc/corpus/                   configuration
package layout

import (
	"path/filepath"
	"strings"
)

// Layout is the tree below a root directory.
type Layout struct{ Root string }

// DamagedMark is part of the name of a file that was set aside because it was damaged or of the wrong kind. The agent
// does not read such a file, and a person decides what to do with it.
const DamagedMark = ".damaged-"

// At returns the layout below root; "" means "/".
func At(root string) Layout {
	if root == "" {
		root = "/"
	}
	return Layout{Root: root}
}

// Relocated reports whether the tree is not the running system's own.
func (l Layout) Relocated() bool { return filepath.Clean(l.Root) != "/" }

// Path returns the path on this machine of a path on the host.
func (l Layout) Path(p string) string { return filepath.Join(l.Root, p) }

// Inside is the reverse of Path: it returns the path by which programs on the host find a file.
func (l Layout) Inside(p string) string {
	rel, err := filepath.Rel(l.Root, p)
	if err != nil || strings.HasPrefix(rel, "..") {
		return p
	}
	return filepath.Join("/", rel)
}

// Configuration returns the directory of the configuration that operators write for this host.
func (l Layout) Configuration() string { return l.Path("/etc/corpus") }

// Config returns the path of the configuration file.
func (l Layout) Config() string { return filepath.Join(l.Configuration(), "agent.yaml") }

// EnvironmentFile returns the path of the file of variables that the agent's unit reads.
func (l Layout) EnvironmentFile() string { return filepath.Join(l.Configuration(), "environment") }

// ConfigurationParts returns the files and directories of the configuration that the agent, or the service manager for
// it, reads or runs.
func (l Layout) ConfigurationParts() (all []string) {
	for _, name := range []string{"agent.yaml", "environment", "grains.yaml", "grains.d", "age.key", "gpgkeys"} {
		all = append(all, filepath.Join(l.Configuration(), name))
	}
	return all
}

// StaticGrains returns the path of the file of grains that an operator writes.
func (l Layout) StaticGrains() string { return filepath.Join(l.Configuration(), "grains.yaml") }

// State returns the directory of the agent's own data.
func (l Layout) State() string { return l.Path("/var/lib/corpus") }

// Trust returns the directory of the metadata that artifact/trust has verified. A host with root.json in it is
// bootstrapped.
func (l Layout) Trust() string { return filepath.Join(l.State(), "trust") }

// Images returns the directory in which a node keeps the images of its guests.
func (l Layout) Images() string { return l.Path("/var/lib/corpus-images") }

// GuestRecords returns the directory with the records of guests on a node, which the states of nodes write.
func (l Layout) GuestRecords() string { return l.Path("/var/lib/corpus-guests") }

// Members returns the path of the file with the members of classes that run on a node, which its states read.
func (l Layout) Members() string { return filepath.Join(l.State(), "members.json") }

// AppliedMembers returns the path of the file in which the states of a node record that they have applied that file.
func (l Layout) AppliedMembers() string { return filepath.Join(l.GuestRecords(), "applied-members") }

// Ledger returns the path of the ledger, which names the deployed releases.
func (l Layout) Ledger() string { return filepath.Join(l.State(), "ledger.json") }

// Reports returns the directory of the reports of runs.
func (l Layout) Reports() string { return filepath.Join(l.State(), "reports") }

// Journal returns the directory of the journal, which has what converging replaced.
func (l Layout) Journal() string { return filepath.Join(l.State(), "journal", "host") }

// ProjectJournal returns the directory of the journal of a project that is not the host's service.
func (l Layout) ProjectJournal(project string) string {
	return filepath.Join(l.State(), "journal", "projects", project)
}

// Registry returns the path of a project's registry entry.
func (l Layout) Registry(project string) string {
	return filepath.Join(l.State(), "projects", project+".json")
}

// ProjectLedger returns the path of the ledger of a project that is not the host's service.
func (l Layout) ProjectLedger(project string) string {
	return filepath.Join(l.State(), "projects", project+".ledger.json")
}

// Copies of essential files are beside the releases, so that a loss of the state directory does not affect them.

// LedgerCopy returns the path of the copy of the ledger.
func (l Layout) LedgerCopy() string { return filepath.Join(l.Projects(), ".ledger.json") }

// ProjectLedgerCopy returns the path of the copy of the ledger of a project that is not the host's service.
func (l Layout) ProjectLedgerCopy(project string) string {
	return filepath.Join(l.Projects(), "."+project+".ledger.json")
}

// RegistryCopy returns the path of the copy of a project's registry entry.
func (l Layout) RegistryCopy(project string) string {
	return filepath.Join(l.Projects(), "."+project+".project.json")
}

// ConfigCopy returns the path of the copy of the last valid configuration file.
func (l Layout) ConfigCopy() string { return filepath.Join(l.Projects(), ".agent.yaml") }

// Incoming returns the directory of artifacts that are being fetched.
func (l Layout) Incoming() string { return filepath.Join(l.State(), "incoming") }

// Part returns the path of the file with the fetched blocks of an artifact. It contains the project and the digest: two
// projects may have an artifact of the same bytes, and both are fetched at the same time.
func (l Layout) Part(project, digest string) string {
	return filepath.Join(l.Incoming(), digest+"."+project+".part")
}

// Chunks returns the path of the file with the fetched chunks of a release, by its project and its artifact's digest.
func (l Layout) Chunks(project, digest string) string {
	return filepath.Join(l.Incoming(), digest+"."+project+".chunks")
}

// Trees returns the directory of the manifests of a project's releases.
func (l Layout) Trees(project string) string { return filepath.Join(l.State(), "trees", project) }

// Tree returns the path of the manifest of a release.
func (l Layout) Tree(project, dir string) string { return filepath.Join(l.Trees(project), dir) }

// Lock returns the path of the file that a run locks.
func (l Layout) Lock() string { return filepath.Join(l.State(), "lock") }

// Refusals returns the path of the file about runs that could not take the lock.
func (l Layout) Refusals() string { return filepath.Join(l.State(), "refused.json") }

// HostKey returns the path of the private key with which the host signs its reports.
func (l Layout) HostKey() string { return filepath.Join(l.State(), "host.key") }

// HostRegistered returns the path of the file about the last registration of that key in a store.
func (l Layout) HostRegistered() string { return filepath.Join(l.State(), "registered.json") }

// HostRecord returns the path of the file about the records that a store may have of this host.
func (l Layout) HostRecord() string { return filepath.Join(l.State(), "record.json") }

// Roster returns the path of the copy of the roster of the rollout of a project's channel.
func (l Layout) Roster(project string) string {
	return filepath.Join(l.State(), "rosters", project+".json")
}

// HoldRequest returns the path of the request to hold or release the host that is not in the ledger yet.
func (l Layout) HoldRequest() string { return filepath.Join(l.State(), "hold.json") }

// HoldLock returns the path of the lock for writing or removing that request.
func (l Layout) HoldLock() string { return filepath.Join(l.State(), "hold.lock") }

// Temporary returns the path of the list of directories in which a run in progress makes temporary files.
func (l Layout) Temporary() string { return filepath.Join(l.State(), "temporary") }

// Kept returns the directory of what is kept between runs because it takes long to compute. It may be removed.
func (l Layout) Kept() string { return filepath.Join(l.State(), "kept") }

// StateFiles returns the files directly in the state directory. A run sets aside anything else in their places.
func (l Layout) StateFiles() []string {
	return []string{l.Ledger(), l.Lock(), l.Refusals(), l.HostKey(), l.HostRegistered(), l.HostRecord(), l.HoldRequest(),
		l.HoldLock(), l.Temporary()}
}

// BaseLink returns the path of the link to base's project.
func (l Layout) BaseLink() string { return l.Path("/srv/base") }

// ServiceLink returns the path of the link to the project of this host's service.
func (l Layout) ServiceLink() string { return l.Path("/srv/service") }

// Projects returns the directory of all projects.
func (l Layout) Projects() string { return l.Path("/srv/projects") }

// Project returns the part of the tree that belongs to a project.
func (l Layout) Project(name string) Project {
	return Project{Name: name, Dir: filepath.Join(l.Projects(), name)}
}

// Project is the part of the tree that belongs to a project.
type Project struct {
	Name string
	Dir  string
}

// Releases returns the directory of unpacked releases.
func (p Project) Releases() string { return filepath.Join(p.Dir, "releases") }

// Release returns the directory of one release.
func (p Project) Release(dir string) string { return filepath.Join(p.Releases(), dir) }

// Staged returns the directory of a release that is complete and not yet synced to disk.
func (p Project) Staged(dir string) string { return filepath.Join(p.Releases(), ".staged-"+dir) }

// ReleaseLink returns the target of a link in the project's directory that leads to a release.
func (p Project) ReleaseLink(dir string) string { return filepath.Join("releases", dir) }

// Archives returns the directory of failed and archived releases.
func (p Project) Archives() string { return filepath.Join(p.Dir, "archives") }

// Git returns the directory of one of the project's repositories: project or pillar.
func (p Project) Git(name string) string { return filepath.Join(p.Dir, "git", name+".git") }

// The names of trees in an archive.
const (
	ArchivedTree = "project"        // the tree of a project before a deploy
	FailedTree   = "project.failed" // a release that was rolled back
)

// Data returns the directory that no deploy changes.
func (p Project) Data() string { return filepath.Join(p.Dir, "data") }

// Pillar returns the directory of this host's own pillar of the project.
func (p Project) Pillar() string { return filepath.Join(p.Dir, "pillar") }

// Who returns the path of the file with the identity of the host, in addition to the ledger and its copy.
func (p Project) Who() string { return filepath.Join(p.Dir, ".host.json") }

// LinkTarget returns the target of /srv/base or /srv/service.
func (p Project) LinkTarget() string { return filepath.Join("projects", p.Name) }

// StateRoots returns the directories of SLS files of a pair of releases. Those of the service have priority over those
// of base. base is "" on a host without one.
func StateRoots(service, base string) []string {
	return roots(service, "states", base)
}

// PillarRoots returns the directories of pillar files of a pair of releases.
func PillarRoots(service, base string) []string {
	return roots(service, "pillar", base)
}

// roots returns the directories of a kind in a service's release and in base's; "" stands for a release that a host
// does not have.
func roots(service, dir, base string) (all []string) {
	if service != "" {
		all = append(all, filepath.Join(service, "salt", "config", dir))
	}
	if base != "" {
		all = append(all, filepath.Join(base, dir))
	}
	return all
}

// Hooks returns the directory of a stage's hooks in a release.
func Hooks(release, stage string) string { return filepath.Join(release, "hooks", stage+".d") }
