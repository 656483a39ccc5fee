package diag

// Topic is what an error with a hint is about. Its code, such as C070, ends each of its hints, and
// docs/troubleshooting.md has a section for it. A number is never given to another topic.
type Topic uint16

// The topics, by the part of the program that they concern.
const (
	// Stores.
	Store       Topic = 10
	StoreURL    Topic = 11
	Credentials Topic = 12
	StoreLost   Topic = 13
	Source      Topic = 14

	// Trust.
	Root      Topic = 20
	Metadata  Topic = 21
	Clock     Topic = 22
	Keys      Topic = 23
	Draft     Topic = 24
	Proof     Topic = 25
	Withdrawn Topic = 26

	// Publishing.
	Unpublished Topic = 30
	Version     Topic = 31
	Tree        Topic = 32
	Recipe      Topic = 33
	Build       Topic = 34
	Package     Topic = 35

	// Rollouts, fleet and clouds.
	Plan     Topic = 40
	Rollout  Topic = 41
	Evidence Topic = 42
	Host     Topic = 43
	Cloud    Topic = 44
	Run      Topic = 45

	// Hosts.
	Config     Topic = 50
	ConfigLost Topic = 51
	Identity   Topic = 52
	Records    Topic = 53
	Journal    Topic = 54
	Busy       Topic = 55
	Held       Topic = 56
	Rollback   Topic = 57
	Changed    Topic = 58
	Needs      Topic = 59
	Undeployed Topic = 60
	Project    Topic = 61
	Hook       Topic = 62
	Health     Topic = 63
	Process    Topic = 64
	Balancer   Topic = 65
	Agent      Topic = 66
	Notify     Topic = 67

	// The machine.
	Disk     Topic = 70
	Rights   Topic = 71
	Exposed  Topic = 72
	Path     Topic = 73
	Program  Topic = 74
	Limits   Topic = 75
	Timeout  Topic = 76
	Usage    Topic = 77
	Output   Topic = 78
	Internal Topic = 79

	// The language.
	YAML      Topic = 100
	Jinja     Topic = 101
	SLS       Topic = 102
	Include   Topic = 103
	Function  Topic = 104
	Argument  Topic = 105
	Requisite Topic = 106
	Top       Topic = 107
	Pillar    Topic = 108
	External  Topic = 109
	Decrypt   Topic = 110
	Call      Topic = 111
	Engine    Topic = 112
	Python    Topic = 113
	Grains    Topic = 114

	// States.
	Prerequisite  Topic = 130
	Contradiction Topic = 131
	Download      Topic = 132
	Edit          Topic = 133
	Archive       Topic = 134
	Packages      Topic = 135
	Repository    Topic = 136
	Unit          Topic = 137
	Account       Topic = 138
	Command       Topic = 139
	Git           Topic = 140
	Database      Topic = 141
	Container     Topic = 142
	Library       Topic = 143
	SSH           Topic = 144
	Mount         Topic = 145
	Setting       Topic = 146
	Server        Topic = 147

	// Clouds.
	Amazon   Topic = 150
	Resource Topic = 151
)

// topic describes a Topic in a line each.
type topic struct{ title, cure string }

// topics is indexed by Topic; a number without a title is not in use.
var topics = [...]topic{
	Store: {"The store, or another server, cannot be reached",
		"see that this host reaches the server: curl -v URL, getent hosts NAME; the next run tries again"},
	StoreURL: {"No store is given, or its URL has a mistake",
		"write it as s3://bucket/prefix, minio://host:port/bucket/prefix, https://host/path or file:///path"},
	Credentials: {"Credentials are missing, were refused, or lack a right",
		"see who you are (aws sts get-caller-identity), and which right docs/buckets.md names for this"},
	StoreLost: {"The store lost or changed files that it had",
		"`corpus verify` says which; `corpus refresh --rebuild` puts back what was kept"},
	Source: {"A file or a source tree cannot be fetched from its URL",
		"fetch it by hand (curl -v, git ls-remote) as the same user on the same machine"},
	Root: {"The root of trust is missing, or is another one",
		"compare sha256sum keys/root.json with the digest that `corpus-agent doctor` shows; never take it from the store"},
	Metadata: {"What the store signs is refused",
		"`corpus verify` says what is wrong; `corpus refresh` signs again what expired"},
	Clock: {"A clock is wrong",
		"compare date -u with a clock that you trust; timedatectl set-ntp true, or chronyc makestep"},
	Keys: {"A signing key is missing, cannot be read, or may not sign",
		"`corpus doctor --keys DIR` shows which keys are there and who can read them"},
	Draft: {"A change needs the signatures of other people",
		"`corpus sign --show FILE` lists who may sign and who has"},
	Proof: {"A channel requires a proof that is missing",
		"`corpus attest PROJECT CHANNEL` makes it, where the attestation key is"},
	Withdrawn: {"A release was withdrawn",
		"publish a corrected version; `corpus yank --undo` takes the withdrawal back"},
	Unpublished: {"The store has no such project, channel or version",
		"`corpus ls` lists what there is"},
	Version: {"A version was published before with other content",
		"publish the tree under a new version: a version never gets other bytes"},
	Tree: {"The tree, or the artifact, cannot be released as it is",
		"`corpus check TREE` and `corpus build TREE` name each mistake"},
	Recipe: {"corpus.yaml has a mistake",
		"docs/packaging.md lists the keys; `corpus check TREE` names all mistakes at once"},
	Build: {"The build of a release failed",
		"read the log of the build; run its command by hand in the tree"},
	Package: {"A package or an image cannot be made of the release",
		"docs/packaging.md says what packages and images take"},
	Plan: {"The plan of a rollout, or a simulation, has a mistake",
		"`corpus project rollout PROJECT CHANNEL` shows the plan; docs/rollouts.md has the form"},
	Rollout: {"The rollout does not allow this now",
		"`corpus rollout status PROJECT CHANNEL` shows what it waits for"},
	Evidence: {"Reports of hosts are missing, or prove nothing",
		"`corpus fleet` and `corpus host ls` show which hosts report; reports.upload turns it on"},
	Host: {"A host is not known, or its record cannot be changed",
		"`corpus host ls` lists the hosts that the store knows"},
	Cloud: {"The description of nodes and guests does not allow this",
		"`corpus node ls` and `corpus guest ls` show what is published"},
	Run: {"A run of a host failed",
		"`corpus-agent why` says what failed first; from afar: `corpus fleet` and `corpus host show NAME`"},
	Config: {"agent.yaml has a mistake",
		"`corpus-agent config check` names all mistakes at once; docs/configuration.md lists the settings"},
	ConfigLost: {"The configuration, or a directory of the host, is lost or damaged",
		"`corpus-agent status` names what is damaged, and the hint the command that repairs it"},
	Identity: {"Which service and instance this host is, is not known",
		"`corpus-agent deploy SERVICE INSTANCE` says it once; or set the hostname"},
	Records: {"What the agent keeps on the host is damaged or cannot be read",
		"`corpus-agent doctor` names the file; the next run sets it aside and restores it"},
	Journal: {"The journal of a converge cannot be read or written",
		"`corpus-agent changes` shows what it has; df -h /var/lib/corpus shows whether there is room"},
	Busy: {"Another process holds the lock",
		"`corpus-agent status` shows the run that holds it; lslocks and fuser -v FILE the process"},
	Held: {"The host is held, or the release is quarantined",
		"`corpus-agent why` says since when and why; unhold and unquarantine end it"},
	Rollback: {"There is nothing to go back to, or the rollback failed",
		"`corpus-agent history` lists the runs, and `corpus-agent why` what to do next"},
	Changed: {"A release on the disk is not as it was signed",
		"`corpus-agent verify` lists what differs; `corpus-agent deploy` fetches it again"},
	Needs: {"The release does not run on this host",
		"`corpus-agent status` shows the system of the host; build.base in corpus.yaml that of the release"},
	Undeployed: {"Nothing is deployed on this host yet",
		"`corpus-agent deploy`, or `corpus-agent why` if it does not work"},
	Project: {"A project of the host cannot do this",
		"`corpus-agent status` lists the projects of the host"},
	Hook: {"A hook or a procedure failed",
		"run it by hand as root in the release; `corpus-agent report` has its output"},
	Health: {"The release is not healthy",
		"`corpus-agent report` has each probe; journalctl -u UNIT -b the log of the service"},
	Process: {"A unit does not run the release that is deployed",
		"systemctl status UNIT shows its processes, and readlink /proc/PID/cwd the release"},
	Balancer: {"The host did not leave or join its load balancers",
		"`corpus-agent elb --help` shows what registers the host again"},
	Agent: {"The agent itself does not run as it should",
		"systemctl status corpus-agent.timer corpus-agent.service; `corpus-agent version`"},
	Notify: {"A notification or a file of metrics was not written",
		"see notify and metrics in agent.yaml; the run itself is not affected"},
	Disk: {"A disk is full, read-only or fails",
		"df -h; df -i; dmesg"},
	Rights: {"The user may not do this",
		"run it as root; where root may not either: findmnt, lsattr, ausearch -m avc, aa-status"},
	Exposed: {"Another user can change what root reads or runs",
		"namei -l PATH shows the owners on the way; look at the content before you make it root's"},
	Path: {"Something is in the way at a path, or the path leads elsewhere",
		"namei -l PATH; ls -ld PATH"},
	Program: {"A program is missing or cannot be started",
		"command -v NAME; ls -l FILE; head -1 FILE"},
	Limits: {"The host is short of memory, processes or open files",
		"free -m; ulimit -a; systemctl show corpus-agent.service -p LimitNOFILE -p TasksMax"},
	Timeout: {"Something took longer than it may",
		"run it by hand with time; the hint names the setting of the limit"},
	Usage: {"The command was written wrong",
		"the command with --help shows its arguments and flags"},
	Output: {"The output cannot be written",
		"df -h; ls -ld DIRECTORY"},
	Internal: {"The program has a mistake",
		"report it with the whole text, and the output of `corpus-agent version`"},
	YAML: {"A file is not YAML",
		"look at the line and the one above it: indentation, quotes, colons"},
	Jinja: {"A template has a mistake",
		"look at the line of the excerpt; `corpus check TREE` renders without a host"},
	SLS: {"An SLS file has the wrong form",
		"docs/language.md has the form; `corpus check TREE` names all mistakes at once"},
	Include: {"An SLS file or an environment is missing",
		"ls the tree: web.server is web/server.sls or web/server/init.sls"},
	Function: {"There is no such state or function",
		"docs/states.md lists the states; `corpus-agent call sys.list_functions` the functions"},
	Argument: {"An argument of a state is wrong",
		"docs/states.md lists the arguments of each state"},
	Requisite: {"A requisite names nothing, or requisites form a cycle",
		"`corpus-agent call state.show_lowstate` shows all states with their names"},
	Top: {"The top file, or a target, has a mistake",
		"`corpus-agent call state.show_top` shows what this host gets"},
	Pillar: {"The pillar cannot be read or made",
		"`corpus-agent pillar` shows what this host gets, with secrets redacted"},
	External: {"A source of ext_pillar fails",
		"run the source's command or request by hand as root on the host"},
	Decrypt: {"A value of the pillar cannot be decrypted",
		"see that the host has its private key: ls -l /etc/corpus; gpg --list-secret-keys"},
	Call: {"A function was called with a wrong argument",
		"`corpus-agent call sys.doc FUNCTION` shows its arguments"},
	Engine: {"The engine or renderer that was named cannot be used",
		"see engine in agent.yaml; engine: salt-call converges with Salt itself"},
	Python: {"Python code of the tree failed",
		"python3 -V; docs/python.md says what modules of a tree may use"},
	Grains: {"A grain has the wrong form, or its program failed",
		"run the program by hand as root; `corpus-agent grains` shows what there is"},
	Prerequisite: {"What a state needs does not exist yet",
		"let the state require the one that makes it; `corpus-agent call state.show_lowstate` shows the order"},
	Contradiction: {"Two states, or arguments of one, contradict each other",
		"remove one of the two, or change their order"},
	Download: {"The source of a state is missing, or is not what its hash says",
		"ls the file in the tree; curl -sS URL and sha256sum compare it"},
	Edit: {"A file is not as the state expects",
		"look at the file on the host: cat -A FILE"},
	Archive: {"An archive is refused, or cannot be extracted",
		"tar -tvf FILE, or unzip -l FILE"},
	Packages: {"The package manager refuses or fails",
		"apt-get -s install NAME, or dnf install --assumeno NAME; apt-cache policy NAME"},
	Repository: {"A package repository has a mistake",
		"apt-get update, or dnf repolist -v"},
	Unit: {"A service does not start, stop or change",
		"systemctl status UNIT; journalctl -u UNIT -n 50"},
	Account: {"A user or a group cannot be made or changed",
		"getent passwd NAME; getent group NAME; ls -l /etc/passwd /etc/*.lock"},
	Command: {"A command of a state failed",
		"run the command by hand as the state's user in the state's directory"},
	Git: {"A git repository cannot be fetched or changed",
		"git ls-remote URL as the state's user; git -C DIR status"},
	Database: {"A database, or a user of it, cannot be changed",
		"run the statement by hand with the client of the server"},
	Container: {"A container, an image or a guest cannot be changed",
		"docker ps -a; docker logs NAME; machinectl list"},
	Library: {"pip, npm, gem or another manager of libraries fails",
		"run its command by hand as the state's user"},
	SSH: {"A key of ssh is wrong or missing",
		"ssh-keygen -lf FILE; ssh-keyscan HOST"},
	Mount: {"A filesystem or volume cannot be mounted or changed",
		"findmnt; blkid; lsblk -f"},
	Setting: {"A setting of the system cannot be changed",
		"the hint names the command that lists what the system has"},
	Server: {"A server that a state talks to does not answer",
		"systemctl status of that server; see host and port of the state"},
	Amazon: {"A state of AWS has a wrong argument",
		"docs/orchestration.md and Salt's boto states have the arguments"},
	Resource: {"A resource of AWS is missing, ambiguous or in the way",
		"look at it with the aws command, and give its ID"},
}
