use super::*;
use crate::chunk::ChunkTable;

fn named(owners: &Owners, id: OwnerId) -> ScopeStats {
    owners.stats(id)
}

#[test]
fn an_owner_counts_the_allocations_of_the_owners_below() {
    let mut owners = Owners::default();
    let outer = owners.open("outer", None, None);
    let inner = owners.open("inner", Some(outer.owner), None);
    let tag = owners.tag(Some(inner.owner), &"MatMul".into());
    owners.account_allocate(tag, 512);
    owners.account_allocate(outer.owner, 256);
    owners.account_free(tag, 512);
    let inner = owners.scope_stats(inner).unwrap();
    assert_eq!(
        (inner.name.as_str(), inner.live, inner.peak, inner.allocated, inner.freed),
        ("outer/inner", 0, 512, 512, 512)
    );
    let outer = owners.scope_stats(outer).unwrap();
    assert_eq!(
        (outer.live, outer.num_live, outer.peak, outer.allocated, outer.freed),
        (256, 1, 768, 768, 512)
    );
    assert_eq!(owners.path(tag), "outer/inner/MatMul");
}

#[test]
fn a_limit_binds_the_owners_below_and_counts_pending_requests() {
    let mut owners = Owners::default();
    let outer = owners.open("outer", None, Some(1024));
    let inner = owners.open("inner", Some(outer.owner), Some(4096));
    owners.account_allocate(inner.owner, 512);
    assert_eq!(owners.exceeded_limit(inner.owner, 512), None);
    let scope_limit = owners.exceeded_limit(inner.owner, 768).unwrap();
    assert_eq!((scope_limit.name.as_str(), scope_limit.limit, scope_limit.live), ("outer", 1024, 512));
    owners.account_pending(inner.owner, 512);
    assert!(owners.exceeded_limit(inner.owner, 256).is_some());
    owners.account_settled(inner.owner, 512);
    assert_eq!(owners.exceeded_limit(inner.owner, 512), None);
    assert_eq!(named(&owners, inner.owner).peak, 512, "what was only pending never was held");
}

#[test]
fn a_closed_scope_ends_once_it_holds_nothing_and_its_slot_is_not_confused() {
    let mut owners = Owners::default();
    let outer = owners.open("outer", None, None);
    let inner = owners.open("inner", Some(outer.owner), None);
    let tag = owners.tag(Some(inner.owner), &"tag".into());
    owners.account_allocate(tag, 256);
    assert_eq!(owners.close(outer).unwrap().live, 256);
    assert_eq!(owners.close(outer), None, "closed before");
    assert_eq!(owners.close(inner).unwrap().live, 256);
    assert_eq!(owners.path(tag), "outer/inner/tag", "what is held still has its names");
    owners.account_free(tag, 256);
    assert_eq!(owners.vacant.len(), 3);
    let next = owners.open("next", None, None);
    assert_eq!(owners.close(inner), None);
    assert_eq!(owners.scope_stats(inner), None);
    assert_eq!(owners.scope_stats(next).unwrap().name, "next");
    assert_eq!(owners.slots.len(), 3, "slots are used again");
}

#[test]
fn holdings_are_those_of_each_owner_alone() {
    let mut owners = Owners::default();
    let scope = owners.open("scope", None, None);
    let tag = owners.tag(Some(scope.owner), &"tag".into());
    assert_eq!(owners.tag(Some(scope.owner), &"tag".into()), tag, "named once");
    let elsewhere = owners.tag(None, &"tag".into());
    owners.account_allocate(scope.owner, 256);
    owners.account_allocate(tag, 512);
    owners.account_allocate(tag, 512);
    owners.account_allocate(elsewhere, 1024);
    owners.account_resize(elsewhere, 1024, 256);
    assert_eq!(owners.holdings(), [(scope.owner, 1, 256), (tag, 2, 1024), (elsewhere, 1, 256)]);
}

#[test]
fn a_chunk_has_an_owner_until_it_is_cleared() {
    let (mut owners, mut chunks) = (Owners::default(), ChunkTable::default());
    let owner = owners.tag(None, &"tag".into());
    let handles: Vec<_> = (1..=100).map(|number| chunks.insert(number * 256, 256)).collect();
    assert!(!owners.has_owned_chunks());
    for &handle in handles.iter().rev().step_by(3) {
        owners.set_owner(handle, owner);
    }
    let held =
        |owners: &Owners| handles.iter().filter(|&&handle| owners.owner_of(handle) == Some(owner)).count();
    assert_eq!(held(&owners), 34);
    for &handle in &handles {
        assert_eq!(owners.clear_owner(handle).is_some(), handle.index() % 3 == 0);
        assert_eq!(owners.clear_owner(handle), None, "once");
    }
    assert_eq!((held(&owners), owners.has_owned_chunks()), (0, false));
}
