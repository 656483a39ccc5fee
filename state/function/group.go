package function

import "github.com/corpus-agent/corpus-agent/state/value"

type group struct{ *Facts }

func groupTable(f *Facts) Table {
	g := group{f}
	return Table{
		"group.info":   Of("name, root=None", g.info),
		"group.getent": Of("refresh=False, root=None", g.all),
	}
}

// info tells about a group; nothing about one that is not there.
func (g group) info(name string, _ any) (*value.Map, error) {
	found, ok, err := g.Host.Accounts.Group(name)
	if err != nil || !ok {
		return value.NewMap(), err
	}
	return value.NewMap("name", found.Name, "passwd", found.Password, "gid", found.GID, "members", value.Strings(found.Members...)), nil
}

func (g group) all(_, _ any) (*value.List, error) {
	names, err := accountNames(g.Host, "/etc/group")
	if err != nil {
		return nil, err
	}
	all := value.NewList()
	for _, name := range names {
		m, err := g.info(name, nil)
		if err != nil {
			return nil, err
		}
		all.Append(m)
	}
	return all, nil
}

// groupActs add and delete groups.
func groupActs(f *Facts) Table {
	return byState(f, map[string]deed{
		"group.add":    {signature: "name", state: "group.present", yes: true},
		"group.delete": {signature: "name", state: "group.absent", yes: true},
	})
}
