package main

import (
	"strings"
	"testing"
)

func TestAccessIsGrantedAndRevoked(t *testing.T) {
	s := newStore(t)
	s.sshKey("ann.pub", 1)
	s.sshKey("bob.pub", 2)
	s.expect(2, "access grant ann shop --yes", "ann is a new user")
	s.expect(0, "access grant ann shop --ssh-key @ann.pub --dry-run", "+ user ann\n    uid: 10001\n    ssh_keys: ssh-")
	s.expect(0, "access grant ann shop --ssh-key @ann.pub --yes", "+ project shop\n    gid: 20001\n    members: ann\n")
	s.expect(0, "access grant ann shop --ssh-key @ann.pub --yes", "nothing to change")
	s.expect(0, "access grant ann shop --sudo ALL --yes", "~ project shop\n    sudo: ann ALL")
	s.expect(0, "access grant ann blog --sudo /bin/true --yes", "gid: 20002")
	s.expect(0, "access grant ann blog --no-sudo --yes", "sudo: ann /bin/true ->")
	s.expect(0, "access grant bob blog --ssh-key @bob.pub --yes", "uid: 10002")
	s.expect(0, "access grant bob blog --ssh-key @ann.pub --yes", "ssh_keys: ssh-ed25519")
	s.expect(0, "access ls", "blog, shop (sudo ALL)")
	s.expect(0, "access ls --project shop", "ann")
	if strings.Contains(s.out, "bob") {
		t.Errorf("the list of shop has\n%s", s.out)
	}
	for line, says := range map[string]string{
		"access grant root shop --ssh-key @ann.pub --yes":  "the name of an account of the system",
		"access grant ann sudo --yes":                      "to which systems give rights",
		"access grant ann shop --sudo reboot --yes":        "the path of a program",
		"access grant ann shop --sudo ALL --no-sudo --yes": "no-sudo",
		"access revoke eve --yes":                          "there is no user eve",
		"access revoke ann shap --yes":                     "ann has no access to shap",
		"access ls --project shap":                         "no user has access to a project shap",
	} {
		s.expect(2, line, says)
	}
	s.expect(0, "access revoke ann blog --yes", "members: ann, bob -> bob")
	s.expect(0, "access revoke ann --yes", "sudo: ann ALL ->")
	var all []shownUser
	s.json("access ls", &all)
	if len(all) != 2 || all[0].Closed != "yes" || len(all[0].SSHKeys) > 0 || len(all[0].Projects) > 0 ||
		len(all[1].Projects) != 1 {
		t.Errorf("the users are %+v", all)
	}
	s.expect(2, "access grant ann shop --yes", "ann is a new user")
	s.expect(0, "access grant ann shop --ssh-key @bob.pub --yes", "closed: yes ->")
	s.json("access ls --project shop", &all)
	if len(all) != 1 || all[0].UID != 10001 {
		t.Errorf("ann, who is there again, is %+v", all)
	}
}
