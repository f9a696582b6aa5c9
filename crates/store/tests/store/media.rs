//! Uploads: in pieces, seen once they are whole, and gone with everything.

use haft_runtime::{Scope, TenantId};
use haft_store::FinishedUpload;

use crate::samples::{house, new_store, scope};

#[tokio::test]
async fn an_upload_is_seen_when_it_is_whole_and_by_its_own_tenant() {
    let (_folder, store) = new_store().await;
    let (mine, theirs) = (scope(), Scope::of_house(TenantId::parse("other").unwrap(), None));
    store.begin_media(&mine, ("m1", "a.png"), "key:k").await.unwrap();
    for (piece, body) in [(0, vec![0, 159, 146]), (1, vec![150])] {
        assert!(store.add_media_piece(&mine, ("m1", piece), body).await.unwrap());
    }
    assert!(!store.add_media_piece(&theirs, ("m1", 2), vec![1]).await.unwrap(), "others add nothing to it");
    assert_eq!(store.media(&mine, "m1").await.unwrap(), None, "it is not whole yet");
    let upload = FinishedUpload { mime: "image/png".into(), size: 4, sha256: "abc".into() };
    assert!(store.finish_media(&mine, "m1", &upload).await.unwrap());
    assert!(!store.add_media_piece(&mine, ("m1", 2), vec![1]).await.unwrap(), "it does not change any more");
    let known = store.media(&mine, "m1").await.unwrap().unwrap();
    assert_eq!((known.name.as_str(), known.mime.as_str(), known.size), ("a.png", "image/png", 4));
    assert_eq!(known.scope.tenant(), mine.tenant());
    assert_eq!(store.media_by_id(&house(), "m1").await.unwrap(), Some(known));
    assert_eq!(store.media_piece(&mine, "m1", 1).await.unwrap(), Some(vec![150]));
    assert_eq!((store.media_size(&mine).await.unwrap(), store.media_size(&theirs).await.unwrap()), (4, 0));
    assert_eq!(store.media(&theirs, "m1").await.unwrap(), None);
    assert_eq!(store.media_piece(&theirs, "m1", 0).await.unwrap(), None);
    assert!(!store.remove_media(&theirs, "m1").await.unwrap());
    assert!(store.remove_media(&mine, "m1").await.unwrap());
    assert_eq!(store.media_by_id(&house(), "m1").await.unwrap(), None);
    assert_eq!(store.media_piece(&mine, "m1", 0).await.unwrap(), None);
}
