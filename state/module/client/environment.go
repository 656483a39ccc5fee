package client

// EnvironmentPackages describes what pip installs into a Python virtual environment.
type EnvironmentPackages struct {
	Environment     string // its directory
	User            string
	Cwd             string
	EnvVars         any
	Env             string // environment of the state tree
	Pkgs            any
	Requirements    any
	Upgrade         bool
	IgnoreInstalled bool
	Proxy           string
	IndexURL        string
	ExtraIndexURL   any
	ExistsAction    string
	NoDeps          bool
	PreReleases     bool
	NoCacheDir      bool
	CacheDir        string
	NoBinary        any
}
