//! Quotas of what clients hold at once, so that no client takes everything.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Who a quota counts for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Client {
    /// An account, by its id.
    Account(String),
    /// Everybody without a valid credential at an address; for IPv6, in a network of 64 bits, which is what one
    /// customer gets at least.
    Address(Option<IpAddr>),
}

impl Client {
    /// A client without a credential.
    pub(crate) fn anonymous(address: Option<IpAddr>) -> Self {
        Self::Address(address.map(|address| match address {
            IpAddr::V4(_) => address,
            IpAddr::V6(address) => {
                let network = u128::from(address) & !u128::from(u64::MAX);
                IpAddr::V6(Ipv6Addr::from(network))
            }
        }))
    }
}

/// The most units that may be held at once. Accounts and anonymous clients have pools of their own: neither can exhaust
/// the other's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QuotaLimits {
    /// All accounts together.
    pub(crate) accounts: usize,
    /// One account.
    pub(crate) per_account: usize,
    /// All anonymous clients together.
    pub(crate) anonymous: usize,
    /// The anonymous clients of one address.
    pub(crate) per_address: usize,
}

/// A quota of something that is counted in units: bytes of bodies, open event streams.
#[derive(Debug)]
pub(crate) struct ClientQuota {
    limits: QuotaLimits,
    held: Mutex<HeldUnits>,
}

#[derive(Debug, Default)]
struct HeldUnits {
    accounts: usize,
    anonymous: usize,
    by_client: HashMap<Client, usize>,
}

/// The units that a client holds. Dropping it returns them.
#[derive(Debug)]
pub(crate) struct QuotaShare {
    quota: Arc<ClientQuota>,
    client: Client,
    units: usize,
}

impl ClientQuota {
    pub(crate) fn new(limits: QuotaLimits) -> Arc<Self> {
        Arc::new(Self { limits, held: Mutex::default() })
    }

    /// A share without units.
    pub(crate) fn share(self: &Arc<Self>, client: Client) -> QuotaShare {
        QuotaShare { quota: Arc::clone(self), client, units: 0 }
    }

    /// Takes units for a client, unless a limit would be exceeded.
    fn take(&self, client: &Client, units: usize) -> bool {
        let mut held = self.held();
        let (pool, pool_limit, client_limit) = match client {
            Client::Account(_) => (held.accounts, self.limits.accounts, self.limits.per_account),
            Client::Address(_) => (held.anonymous, self.limits.anonymous, self.limits.per_address),
        };
        let of_client = held.by_client.get(client).copied().unwrap_or_default();
        if pool.saturating_add(units) > pool_limit || of_client.saturating_add(units) > client_limit {
            return false;
        }
        *held.pool(client) += units;
        *held.by_client.entry(client.clone()).or_default() += units;
        true
    }

    fn give_back(&self, client: &Client, units: usize) {
        let mut held = self.held();
        let pool = held.pool(client);
        *pool = pool.saturating_sub(units);
        if let Some(of_client) = held.by_client.get_mut(client) {
            *of_client = of_client.saturating_sub(units);
            if *of_client == 0 {
                held.by_client.remove(client);
            }
        }
    }

    fn held(&self) -> MutexGuard<'_, HeldUnits> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HeldUnits {
    const fn pool(&mut self, client: &Client) -> &mut usize {
        match client {
            Client::Account(_) => &mut self.accounts,
            Client::Address(_) => &mut self.anonymous,
        }
    }
}

impl QuotaShare {
    /// Takes more units until the share has `units`. Returns whether the limits allow that; if not, it keeps those it
    /// has.
    pub(crate) fn grow_to(&mut self, units: usize) -> bool {
        let more = units.saturating_sub(self.units);
        if more > 0 && !self.quota.take(&self.client, more) {
            return false;
        }
        self.units += more;
        true
    }
}

impl Drop for QuotaShare {
    fn drop(&mut self) {
        self.quota.give_back(&self.client, self.units);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMITS: QuotaLimits = QuotaLimits { accounts: 20, per_account: 8, anonymous: 10, per_address: 4 };

    fn address(text: &str) -> Client {
        Client::anonymous(Some(text.parse().unwrap()))
    }

    fn account(id: &str) -> Client {
        Client::Account(id.to_owned())
    }

    #[test]
    fn one_address_cannot_take_what_others_need() {
        let quota = ClientQuota::new(LIMITS);
        let mut greedy = quota.share(address("192.0.2.1"));
        assert!(greedy.grow_to(4) && !greedy.grow_to(5));
        assert!(!quota.share(address("192.0.2.1")).grow_to(1));
        assert!(quota.share(address("192.0.2.2")).grow_to(4));
        assert!(quota.share(account("a")).grow_to(8));
    }

    #[test]
    fn anonymous_clients_together_cannot_take_the_units_of_accounts() {
        let quota = ClientQuota::new(LIMITS);
        let mut anonymous: Vec<_> = (1..=5).map(|n| quota.share(address(&format!("192.0.2.{n}")))).collect();
        let granted = anonymous.iter_mut().filter_map(|share| share.grow_to(4).then_some(4)).sum::<usize>();
        assert_eq!(granted, 8);
        assert!(quota.share(account("a")).grow_to(8));
    }

    #[test]
    fn addresses_of_one_ipv6_network_are_one_client() {
        let quota = ClientQuota::new(LIMITS);
        let mut share = quota.share(address("2001:db8::1"));
        assert!(share.grow_to(4));
        assert!(!quota.share(address("2001:db8::ffff:2")).grow_to(1));
        assert!(quota.share(address("2001:db8:0:1::1")).grow_to(1));
    }

    proptest! {
        #[test]
        fn limits_hold_and_everything_is_given_back(
            steps in prop::collection::vec((0..6_usize, 0..12_usize, any::<bool>()), 1..60),
        ) {
            let quota = ClientQuota::new(LIMITS);
            let mut shares: Vec<Option<QuotaShare>> = (0..6).map(|_| None).collect();
            for (n, units, keep) in steps {
                let client = if n < 3 { account(&n.to_string()) } else { address(&format!("192.0.2.{n}")) };
                let mut share = shares[n].take().unwrap_or_else(|| quota.share(client));
                share.grow_to(units);
                shares[n] = keep.then_some(share);
                let held = |range: std::ops::Range<usize>| {
                    shares[range].iter().flatten().map(|share| share.units).collect::<Vec<_>>()
                };
                prop_assert!(held(0..3).iter().sum::<usize>() <= LIMITS.accounts);
                prop_assert!(held(3..6).iter().sum::<usize>() <= LIMITS.anonymous);
                prop_assert!(held(0..3).iter().all(|units| *units <= LIMITS.per_account));
                prop_assert!(held(3..6).iter().all(|units| *units <= LIMITS.per_address));
            }
            drop(shares);
            let held = quota.held();
            prop_assert_eq!((held.accounts, held.anonymous, held.by_client.len()), (0, 0, 0));
        }
    }
}
