#!/bin/sh
# Prints the state of a host that a check must not change: files, packages, units, rules, interfaces and routes.
export LC_ALL=C
find /etc /usr/local /opt /var/lib /root /srv -xdev ! -path '/var/lib/systemd/*' ! -path '/var/lib/private*' \
  -printf '%p %y %m %U %s %T@ %l\n' | sort
dpkg-query --show --showformat='${Package} ${Version} ${Status}\n'
systemctl list-unit-files --no-legend --no-pager
systemctl list-units --all --no-legend --no-pager --plain --type=service --type=timer | awk '{print $1, $2, $3}'
nft list ruleset
ip -oneline address | sed 's/valid_lft.*//'
ip route show table all
sysctl -a 2> /dev/null | grep -E '^(net.ipv4.ip_forward|net.bridge|fs.inotify)'
