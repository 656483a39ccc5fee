package { ['coreutils','sed','curl','git','cron','procps']: ensure => installed }
file { '/srv/bench': ensure => directory, owner => 'root', group => 'root', mode => '0755' }
Integer[1, 9].each |$i| { file { "/srv/bench/d${i}": ensure => directory, group => 'users', mode => '0750' } }
Integer[1, 10].each |$i| { $t = $i % 9 + 1 file { "/srv/bench/link${i}": ensure => link, target => "/srv/bench/d${t}" } }
lookup('users').each |$n, $u| {
  group { $n: ensure => present, gid => $u['uid'] }
  user { $n: ensure => present, uid => $u['uid'], gid => $n, comment => $u['fullname'], shell => $u['shell'], home => "/home/${n}", managehome => true, groups => $u['groups'] }
  ssh_authorized_key { $u['comment']: ensure => present, user => $n, type => 'ssh-ed25519', key => $u['key'], require => User[$n] }
}
lookup('apps').each |$n, $a| {
  file { "/srv/bench/d1/${n}.conf": ensure => file, owner => 'root', group => 'users', mode => '0640', content => epp('bench/app.conf.epp', { 'name' => $n, 'app' => $a }) }
}
Integer[1, 10].each |$i| { exec { "/usr/bin/touch /srv/bench/d2/marker${i}": unless => "/usr/bin/test -e /srv/bench/d2/marker${i}", require => File['/srv/bench/d2'] } }
Integer[1, 4].each |$i| { cron { "job-${i}": command => "/usr/bin/true job${i}", user => 'root', minute => $i * 7, hour => $i } }
